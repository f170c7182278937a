//! A language model of random weights, in the format that llama.cpp reads: llama's architecture, a vocabulary of bytes.

use std::io::{self, Write};

/// The dimensions of a model. All are small: what counts is the sequence of kernels, not their work.
pub(crate) struct Shape {
    pub(crate) layers: u32,
    pub(crate) embedding: u32,
}

const HEADS: u32 = 4;
const CONTEXT: u32 = 512;
/// Unknown, begin, end, and one token for each byte.
const VOCABULARY: u32 = 3 + 256;
const ALIGNMENT: usize = 32;

/// Types of values and of tensors, by the numbers that the format gives them.
mod kind {
    pub(super) const U32: u32 = 4;
    pub(super) const I32: u32 = 5;
    pub(super) const F32: u32 = 6;
    pub(super) const STRING: u32 = 8;
    pub(super) const ARRAY: u32 = 9;
    pub(super) const TENSOR_F32: u32 = 0;
    pub(super) const TENSOR_F16: u32 = 1;
}

struct Tensor {
    name: String,
    /// The innermost dimension first.
    size: Vec<u32>,
}

impl Tensor {
    /// Vectors are weights of norms, which llama.cpp wants as f32.
    fn kind(&self) -> u32 {
        if self.size.len() == 1 {
            kind::TENSOR_F32
        } else {
            kind::TENSOR_F16
        }
    }

    fn bytes(&self) -> usize {
        let count: u32 = self.size.iter().product();
        count as usize * if self.size.len() == 1 { 4 } else { 2 }
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// The metadata, with the number of its entries.
#[derive(Default)]
struct Metadata {
    entries: u64,
    bytes: Vec<u8>,
}

impl Metadata {
    fn entry(&mut self, key: &str, kind: u32) -> &mut Vec<u8> {
        self.entries += 1;
        string(&mut self.bytes, key);
        self.bytes.extend(kind.to_le_bytes());
        &mut self.bytes
    }

    fn text(&mut self, key: &str, value: &str) {
        string(self.entry(key, kind::STRING), value);
    }

    fn number(&mut self, key: &str, value: u32) {
        self.entry(key, kind::U32).extend(value.to_le_bytes());
    }

    fn array(&mut self, key: &str, kind: u32, length: u32) -> &mut Vec<u8> {
        let out = self.entry(key, kind::ARRAY);
        out.extend(kind.to_le_bytes());
        out.extend(u64::from(length).to_le_bytes());
        out
    }
}

fn metadata(shape: &Shape) -> Metadata {
    let mut data = Metadata::default();
    data.text("general.architecture", "llama");
    data.text("general.name", "random");
    data.number("llama.block_count", shape.layers);
    data.number("llama.context_length", CONTEXT);
    data.number("llama.embedding_length", shape.embedding);
    data.number("llama.feed_forward_length", 2 * shape.embedding);
    data.number("llama.attention.head_count", HEADS);
    data.number("llama.attention.head_count_kv", HEADS);
    data.number("llama.rope.dimension_count", shape.embedding / HEADS);
    data.number("llama.vocab_size", VOCABULARY);
    data.entry("llama.attention.layer_norm_rms_epsilon", kind::F32)
        .extend(1e-5_f32.to_le_bytes());
    data.text("tokenizer.ggml.model", "llama");
    data.number("tokenizer.ggml.unknown_token_id", 0);
    data.number("tokenizer.ggml.bos_token_id", 1);
    data.number("tokenizer.ggml.eos_token_id", 2);
    let tokens = data.array("tokenizer.ggml.tokens", kind::STRING, VOCABULARY);
    for special in ["<unk>", "<s>", "</s>"] {
        string(tokens, special);
    }
    for byte in 0..=u8::MAX {
        string(tokens, &format!("<0x{byte:02X}>"));
    }
    let scores = data.array("tokenizer.ggml.scores", kind::F32, VOCABULARY);
    scores.extend([0; 4 * VOCABULARY as usize]);
    // Unknown is 2, control 3, a byte 6.
    let types = data.array("tokenizer.ggml.token_type", kind::I32, VOCABULARY);
    for token in 0..VOCABULARY {
        let one: i32 = match token {
            0 => 2,
            1 | 2 => 3,
            _ => 6,
        };
        types.extend(one.to_le_bytes());
    }
    data
}

fn tensors(shape: &Shape) -> Vec<Tensor> {
    let (wide, wider) = (shape.embedding, 2 * shape.embedding);
    let tensor = |name: &str, size: &[u32]| Tensor {
        name: format!("{name}.weight"),
        size: size.to_vec(),
    };
    let mut all = vec![
        tensor("token_embd", &[wide, VOCABULARY]),
        tensor("output_norm", &[wide]),
        tensor("output", &[wide, VOCABULARY]),
    ];
    for layer in 0..shape.layers {
        let parts: [(&str, &[u32]); 9] = [
            ("attn_norm", &[wide]),
            ("attn_q", &[wide, wide]),
            ("attn_k", &[wide, wide]),
            ("attn_v", &[wide, wide]),
            ("attn_output", &[wide, wide]),
            ("ffn_norm", &[wide]),
            ("ffn_gate", &[wide, wider]),
            ("ffn_up", &[wide, wider]),
            ("ffn_down", &[wider, wide]),
        ];
        all.extend(parts.map(|(name, size)| tensor(&format!("blk.{layer}.{name}"), size)));
    }
    all
}

/// Random weights between 0.008 and 0.06 of either sign: the same ones each time.
struct Weights(u64);

impl Weights {
    fn half(&mut self) -> u16 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let bits = (self.0 >> 32) as u16;
        // Sign and mantissa are random, the exponent is one of three.
        (bits & 0x83ff) | ((8 + (bits >> 10) % 3) << 10)
    }
}

/// Writes a model.
pub(crate) fn write(out: &mut impl Write, shape: &Shape) -> io::Result<()> {
    let (data, tensors) = (metadata(shape), tensors(shape));
    let mut head = b"GGUF".to_vec();
    head.extend(3_u32.to_le_bytes());
    head.extend((tensors.len() as u64).to_le_bytes());
    head.extend(data.entries.to_le_bytes());
    head.extend(&data.bytes);
    let mut offset = 0;
    for tensor in &tensors {
        string(&mut head, &tensor.name);
        head.extend((tensor.size.len() as u32).to_le_bytes());
        for &size in &tensor.size {
            head.extend(u64::from(size).to_le_bytes());
        }
        head.extend(tensor.kind().to_le_bytes());
        head.extend((offset as u64).to_le_bytes());
        offset += tensor.bytes().next_multiple_of(ALIGNMENT);
    }
    head.resize(head.len().next_multiple_of(ALIGNMENT), 0);
    out.write_all(&head)?;
    let mut weights = Weights(0x5eed);
    for tensor in &tensors {
        let mut bytes: Vec<u8> = if tensor.kind() == kind::TENSOR_F32 {
            1_f32.to_le_bytes().repeat(tensor.bytes() / 4)
        } else {
            (0..tensor.bytes() / 2)
                .flat_map(|_| weights.half().to_le_bytes())
                .collect()
        };
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        out.write_all(&bytes)?;
    }
    Ok(())
}
