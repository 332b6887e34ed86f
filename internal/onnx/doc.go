// Package onnx reads the part of an ONNX file that a small feed-forward network is made of: the
// nodes of its graph in order, and its constant tensors as float32. It interprets no operator;
// package decoder/weights does.
//
// An ONNX file is one protocol buffer message. The fields read, by their numbers in onnx.proto:
//
//	ModelProto      7 graph, 8 opset_import
//	GraphProto      1 node, 5 initializer, 11 input, 12 output, 15 sparse_initializer (refused)
//	NodeProto       1 input, 2 output, 3 name, 4 op_type, 5 attribute, 7 domain
//	AttributeProto  1 name, 2 f, 3 i, 4 s, 5 t, 6 g (not read, but told), 7 floats, 8 ints
//	ValueInfoProto  1 name, 2 type; of inputs: TypeProto 1 tensor_type, of it 1 elem_type, 2 shape (1 dim: 1 dim_value)
//	TensorProto     1 dims, 2 data_type, 4 float_data, 5 int32_data, 7 int64_data, 8 name, 9 raw_data, 10 double_data,
//	                13 external_data, 14 data_location
//
// All other fields are skipped. Types: FLOAT, DOUBLE, FLOAT16, BFLOAT16, INT32, INT64, BOOL, UINT8,
// INT8; a tensor of another type is kept without values and with the reason.
//
// # Untrusted bytes
//
// No input makes Parse panic. What it allocates is proportional to the bytes it is given: values
// are counted against the declared shape before they are decoded, and there are at most 65,536
// nodes, tensors, and inputs and outputs. Weights in files of their own are read through a function
// of the caller, which decides what may be opened.
//
// Parse may be called from any goroutine; a Model is a plain value.
package onnx
