//! PyTorch in call paths: the operator of a C++ function, and the module of a Python function.

/// Start of the functions by which PyTorch's operators are called: `at::_ops::addmm::call(at::Tensor const&, …)`.
const OPERATOR: &str = "at::_ops::";
/// By what PyTorch calls the `forward` of a module. Of 2.x, the second does if the module has hooks.
const CALLS_OF_MODULE: [&str; 2] = ["Module._call_impl", "Module._call_impl.<locals>.inner"];

/// The operator that a C++ function calls, as torch.profiler names it: `aten::addmm`.
pub(super) fn operator(function: &str) -> Option<String> {
    let (class, _) = function.strip_prefix(OPERATOR)?.split_once("::")?;
    Some(format!("aten::{}", name_of(class)))
}

/// The class of a module whose `forward` is this Python function, called by `caller`.
pub(super) fn module<'f>(function: &'f str, caller: &str) -> Option<&'f str> {
    let class = function.strip_suffix(".forward")?;
    CALLS_OF_MODULE.contains(&caller).then_some(class)
}

/// The name of an operator without that of its overload: the class of `aten::add.Tensor` is `add_Tensor`. A name of an
/// overload that begins with a capital letter is recognised by that, others by the lists.
fn name_of(class: &str) -> &str {
    let without_out = class.strip_suffix("_out").unwrap_or(class);
    if WHOLE.contains(&without_out) {
        return without_out;
    }
    let ends = class.match_indices('_').map(|(at, _)| at);
    let of_overload = |&at: &usize| {
        let (name, overload) = (&class[..at], &class[at + 1..]);
        let base = overload.strip_suffix("_out").unwrap_or(overload);
        let is_known = overload == "out" || OVERLOADS.contains(&base);
        !name.trim_matches('_').is_empty()
            && (is_known || overload.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    ends.into_iter().find(of_overload).map_or(class, |at| &class[..at])
}

/// Names of overloads in `native_functions.yaml` of PyTorch 1.13 and 2.15, without `_out`. Left out are those that more names
/// of operators end with than overloads have, as `data` and `indices`.
#[rustfmt::skip]
const OVERLOADS: &[&str] = &[
    "a", "all", "array", "atol_rtol_float", "atol_rtol_tensor", "b", "beta", "bin_ct", "bins_tensor",
    "ccol_row_value", "ccol_row_value_size", "center", "comp_plain_value", "comp_plain_value_size", "correction",
    "correction_names", "crow_col_value", "crow_col_value_size", "decimals", "deprecated", "dim", "dim_Dimname",
    "dim_DimnameList", "dim_IntList", "dim_dtype", "dim_int", "dim_max", "dim_min", "dim_values", "dimname",
    "dimname_src", "dimname_stable", "dimname_value", "dimname_values", "dimname_values_stable", "dims", "dtype",
    "dtype_layout", "dx", "e", "eigenvalues", "ellipsis_idx", "float", "float_Tensor", "float_float", "fullcoverage",
    "generator", "generator_with_names", "grad_input", "indexing", "indices_size", "input", "int", "int_Scalar",
    "int_Tensor", "int_bins", "low", "low_dtype", "low_generator", "low_generator_dtype", "m", "memory_format", "msg",
    "n_scalar", "named_out_dim", "names", "names_ScalarOpt_dim", "names_ScalarOpt_dim_dtype", "names_dim",
    "names_dim_max", "names_dim_min", "names_dim_values", "names_dtype", "no_stats", "ntonly", "ord_str", "other",
    "other_scalar", "out_", "out_mode", "out_rcond_tensor", "out_tol_tensor", "output", "output_mask", "p_str",
    "padding", "padding_idx", "periodic", "periodic_alpha", "periodic_alpha_beta", "rcond_tensor", "result", "scalar",
    "scalararray", "scalarint", "scalarrayarray", "scalarrayint", "sections", "self", "self_Tensor", "self_int",
    "self_scalar", "source_Storage", "source_Storage_storage_offset", "source_Tensor", "source_Tensor_storage_offset",
    "sparse_dim", "src", "stable", "start", "start_step", "step", "str_ord", "tensor_indices_or_sections",
    "tensor_lr", "tensor_qparams", "tensorarray", "tensorarrayint", "tol_tensor", "two", "unary", "using_ints",
    "using_names", "value", "value_reduce", "values", "values_stable", "vec", "x", "x_scalar",
];

/// Operators, without `_out`, whose names end like that of an overload.
#[rustfmt::skip]
const WHOLE: &[&str] = &[
    "_add_batch_dim", "_assert_scalar", "_cast_Byte", "_cast_Char", "_cast_Double", "_cast_Float", "_cast_Half",
    "_cast_Int", "_cast_Long", "_cast_Short", "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "_functional_assert_scalar", "_nested_get_values", "_remove_batch_dim", "_resize_output",
    "_sparse_compressed_tensor_with_dims", "_sparse_coo_tensor_with_dims", "affine_grid_generator",
    "cudnn_affine_grid_generator", "dense_dim", "dequantize_tensors", "matrix_H", "mkldnn_linear_backward_input",
    "norm_except_dim", "numpy_T", "quantize_per_tensor_tensors", "random_from", "random_to", "refine_names",
    "scatter_reduce", "sparse_coo_tensor_size", "sparse_dim", "take_along_dim", "unique_dim",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_have_the_names_that_torch_profiler_gives_them() {
        let names = [
            ("addmm", "addmm"),
            ("add_Tensor", "add"),
            ("add__Tensor", "add_"),
            ("_foreach_add_ScalarList_out", "_foreach_add"),
            ("sum_dim_IntList", "sum"),
            ("mm_out", "mm"),
            ("zero_", "zero_"),
            ("_softmax_backward_data", "_softmax_backward_data"),
            ("_softmax_backward_data_out", "_softmax_backward_data"),
            ("split_with_sizes", "split_with_sizes"),
            ("unique_dim_out", "unique_dim"),
            ("max_dim", "max"),
            ("native_layer_norm_backward", "native_layer_norm_backward"),
            ("numpy_T", "numpy_T"),
            ("__and___Scalar", "__and__"),
        ];
        for (class, name) in names {
            let function = format!("at::_ops::{class}::call(at::Tensor const&)");
            assert_eq!(operator(&function), Some(format!("aten::{name}")));
        }
        assert_eq!(operator("at::native::addmm(at::Tensor const&)"), None);
    }

    #[test]
    fn modules_are_what_pytorch_calls() {
        assert_eq!(module("Linear.forward", "Module._call_impl"), Some("Linear"));
        assert_eq!(
            module("Linear.forward", "Module._call_impl.<locals>.inner"),
            Some("Linear")
        );
        assert_eq!(module("Linear.forward", "train"), None);
        assert_eq!(module("train", "Module._call_impl"), None);
    }
}
