// Package parquet reads embeddings and edges from Apache Parquet files and writes these and predictions, on top of parquet-go.
// Only the command line imports it, so that programs that embed the database do not link that library.
//
//	column      read from                                                       written as
//	key         string, binary, int32 or int64                                  string, or binary if a key is not UTF-8
//	embedding   list of float, double or half (float16); nested or repeated     list of float
//	tags        list of strings, or a string of tags separated by semicolons    list of string
//	payload     string or binary                                                optional binary
//
// Edges have the columns source and target, predictions (see hitRow) also rank, score and probability.
//
// Rows are read column by column: of each column one page at a time is held, and 1,024 of its values.
//
// # Untrusted bytes
//
// parquet-go trusts the sizes a file declares. Therefore they are checked first (see thrift.go): every length in the footer and in the
// header of every page that will be read must fit the bytes that are there, a page may hold at most 16 MiB + 1,024 times its
// compressed bytes, and 2^20 values + 1,024 times its compressed bytes. A panic of the library on a damaged file becomes an error.
//
// # Concurrency
//
// Rows, Table and the writers belong to one goroutine each.
package parquet
