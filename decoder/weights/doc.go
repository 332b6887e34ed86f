// Package weights reads trained decoders from the files that training frameworks write.
//
//	.safetensors  tensors by key
//	.npz          tensors by key, of NumPy
//	.pt, .pth     the tensors of a torch.save zip; nothing in it is executed
//	.onnx         tensors and the graph that computes with them, of either exporter of PyTorch
//	.json         the spec of a Dot decoder, which has no weights
//
// An .onnx file says what is computed. The others do not: a [decoder.Spec] says it, or a layout
// does. A layout is the way in which a model in use names its tensors (OGB, PyG, GiGL, DGL, NCN and
// others, see [Layouts]); most are told by the keys. docs/import.md has the keys of every layout
// and the operators of ONNX.
//
// [Read] makes the decoder. [SelfCheck] compares it with scores that the training framework
// computed, which [ReadCases] reads. Nothing else shows a wrong activation.
//
// # Errors
//
// A file that no decoder can be made of gives an error of one line with the file, the key or node,
// what was found and what was wanted. Models whose score needs the common neighbourhood of the pair
// (SEAL, NCN, BUDDY, SUREL, Neo-GNN) are refused by name. A file that is not there gives an error
// that matches fs.ErrNotExist.
//
// # Files of others
//
// A file may come from anywhere. What is read into memory is bounded by the size of the file.
// Values of an .onnx that lie in other files are read from its folder and below it alone.
//
// The functions keep no state and may run on any goroutine.
package weights
