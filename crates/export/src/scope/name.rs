//! Names of kernels, calls, markers and copies in the files.

use super::Scope;
use crate::options::{KernelNames, Kind, Layout, library};
use crate::records::{Mark, Region, Row};
use roctop_model::subject::{DIRECTIONS, direction_number};
use roctop_ring::record::{Domain, marker_call};
use roctop_trace::item::{ApiCall, Copy, Dispatch, Kernel, KernelId, OperationId, TextId};
use roctop_trace::kernel_name;
use std::borrow::Cow;
use std::sync::Arc;

impl<'a> Scope<'a> {
    /// Kernel name of a dispatch, by the selected option.
    pub fn kernel_name(&self, row: &Row<Dispatch>) -> Cow<'_, str> {
        let region = row.region.filter(|_| self.choice.rename);
        let text = region.and_then(|region| self.texts.get(region.text));
        text.map_or_else(
            || self.called(row.record.kernel).unwrap_or("").into(),
            |text| text.to_string().into(),
        )
    }

    /// Text of a range that names kernels; empty if none.
    pub(crate) fn region_name(&self, region: Option<Region>) -> String {
        let region = region.filter(|_| self.choice.rename);
        let text = region.and_then(|region| self.texts.get(region.text));
        text.map_or_else(String::new, |text| text.to_string())
    }

    /// A text of call arguments.
    pub(crate) fn text(&self, id: TextId) -> Option<Arc<str>> {
        self.texts.get(id)
    }

    /// Name of a kernel, by the selected option.
    pub fn symbol_name(&self, kernel: &'a Kernel) -> Cow<'a, str> {
        let alias = || self.choice.aliases.of(&kernel.name, &kernel.mangled);
        match self.choice.kernel_names {
            KernelNames::Mangled => Cow::Owned(with_kd(&kernel.mangled)),
            form => match (alias(), form) {
                (Some(alias), _) => Cow::Borrowed(alias),
                (None, KernelNames::Truncated) => Cow::Owned(kernel_name::truncate(&kernel.name)),
                (None, _) => Cow::Borrowed(&kernel.name),
            },
        }
    }

    /// Name of a kernel in the files.
    pub fn called(&self, kernel: KernelId) -> Option<&str> {
        self.names.get(kernel.0 as usize).map(|name| &**name)
    }

    /// Name of the function called.
    pub fn function(&self, call: &ApiCall) -> &'a str {
        self.operation(call.operation)
    }

    fn operation(&self, id: OperationId) -> &'a str {
        let known = self.run.operations.get(id.0 as usize);
        known.map_or("", |operation| &operation.name)
    }

    /// Kind of a call.
    pub fn kind(&self, call: &ApiCall) -> Kind {
        self.kind_of(call.operation)
    }

    /// Kind of an operation.
    pub fn kind_of(&self, operation: OperationId) -> Kind {
        let known = self.run.operations.get(operation.0 as usize);
        let kind = known.and_then(|operation| Kind::of(Domain(operation.domain)));
        kind.unwrap_or(Kind::HipRuntime)
    }

    /// Domain of a call in the files.
    pub fn domain(&self, call: &ApiCall) -> &'static str {
        match (self.kind(call), self.is_seed()) {
            (Kind::HipRuntime, true) => "HIP_RUNTIME_API",
            (Kind::HipRuntime, false) => "HIP_RUNTIME_API_EXT",
            (Kind::HipCompiler, true) => "HIP_COMPILER_API",
            (Kind::HipCompiler, false) => "HIP_COMPILER_API_EXT",
            (Kind::HsaAmd, _) => "HSA_AMD_EXT_API",
            (Kind::HsaImage, _) => "HSA_IMAGE_EXT_API",
            (Kind::HsaFinalizer, _) => "HSA_FINALIZE_EXT_API",
            (kind, _) => library(kind).map_or("HSA_CORE_API", |(_, library)| library.domain),
        }
    }

    /// Domain of a marker in the files.
    pub fn marker_domain(&self, mark: &Mark) -> &'static str {
        match (self.is_control(mark), self.choice.layout) {
            (true, _) => "MARKER_CONTROL_API",
            (false, _) if self.is_name(mark) => "MARKER_NAME_API",
            (false, Layout::Seed) => "MARKER_CORE_API",
            (false, Layout::New) => "MARKER_CORE_RANGE_API",
        }
    }

    /// Whether it pauses or resumes recording.
    pub fn is_control(&self, mark: &Mark) -> bool {
        self.is_call_of(mark, &[marker_call::PAUSE, marker_call::RESUME])
    }

    /// Whether it names something.
    pub fn is_name(&self, mark: &Mark) -> bool {
        self.is_call_of(mark, &marker_call::NAMES)
    }

    fn is_call_of(&self, mark: &Mark, operations: &[u16]) -> bool {
        let name = mark.call.map(|call| self.operation(call));
        name.is_some_and(|name| operations.iter().any(|op| marker_call::name(*op) == Some(name)))
    }

    /// Text of a marker; name of a call.
    pub fn message(&self, mark: &Mark) -> Cow<'a, str> {
        match mark.call {
            Some(call) => self.operation(call).into(),
            None => self
                .texts
                .get(mark.text)
                .map_or("".into(), |text| text.to_string().into()),
        }
    }

    /// Direction of a copy in the files.
    pub fn direction(&self, copy: &Copy) -> &'static str {
        let whole = DIRECTIONS[direction_number(copy.direction)];
        if self.is_seed() {
            whole.strip_prefix("MEMORY_COPY_").unwrap_or(whole)
        } else {
            whole
        }
    }
}

/// Symbol name of a kernel.
pub fn with_kd(mangled: &str) -> String {
    format!("{mangled}.kd")
}
