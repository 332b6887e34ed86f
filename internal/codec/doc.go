// Package codec reads the files that embeddings and decoder weights come in. It knows nothing of
// the database: it turns bytes from outside into tensors, rows and table lines, or into an error
// that says where the bytes are wrong.
//
//	ReadTensors   every tensor of a file, by name, as float32: decoder weights
//	OpenRows      one matrix as a stream of rows, with keys, tags and payloads where the file has them
//	OpenTable     tab-separated lines: node names, edges
//	OpenLines     lines of text whose fields the caller separates
//	ReadIntegers  every array of integers of a file, as int64: edges as pairs of row numbers
//
//	format         tensors  rows  notes
//	.safetensors   yes      yes   F16 BF16 F32 F64 I8..I64 U8..U64 BOOL
//	.npy           yes      yes   f2 f4 f8 i1..i8 u1..u8 b1, little-endian, C and Fortran order
//	.npz           yes      yes   stored or deflated entries
//	.pt .pth       yes      yes   torch.save, its old format too; state dicts and nested dicts of tensors and NumPy arrays
//	.fvecs .bvecs           yes   int32 width before each row of float32 or uint8
//	.jsonl                  yes   {"key", "embedding", "tags", "payload"} per line
//	.csv .tsv               yes   optional header, optional key column, numbers
//
// Each may be compressed with zstd or gzip. Compression and binary formats are recognised by their
// first bytes; only text formats and vecs need their extension.
//
// # Untrusted bytes
//
// No input makes a reader panic or execute anything. PyTorch files are pickles, which are programs.
// The interpreter here runs the part of that language that builds dicts, lists and tensors. It
// refuses every global outside a short list (see torch.go), and names it.
//
// Memory follows the bytes that exist, not the sizes they declare:
//
//   - A declared shape is checked against the bytes of its file or entry before anything is
//     allocated for it; decompression grows its buffer as data arrives.
//   - Rows are streamed: a reader holds one block of a few MiB, whatever the file. Rows wider than
//     2^20 values and lines longer than 4 MiB are refused.
//   - What must be held whole (tensors; zip archives, Fortran-order matrices inside a compressed
//     file) may grow to 16 MiB + 100 times the size of the file on disk, inflated bytes and float32
//     values together. A file beyond that is refused as a decompression bomb; a sound one can be
//     decompressed before it is imported.
//   - What describes the tensors (the directory of an archive, the values of a pickle, names,
//     shapes) may take 16 MiB + 8 times the size of the file.
//   - What is streamed out of a compressed file or entry may be 256 MiB + 256 times the size of the
//     file, since it takes time, and room where it is stored. Where a header declares more, the
//     file is refused before it is read. Deflate expands zeros to up to 1,032 times its input; zstd
//     has no such limit.
//   - Tensors have at most 64 dimensions, and entries of an archive do not overlap.
//   - zstd windows are held to the first of these bounds, and to 128 MiB.
//
// # Concurrency
//
// ReadTensors and ParseTensors may be called from any goroutine. A RowReader or Table belongs to
// one goroutine. A file must not change while it is read.
package codec
