// Package parquet reads embeddings and edges from Apache Parquet files and writes these and
// predictions, on top of parquet-go. Only the command imports it: programs that embed the database
// do not link that library.
//
//	column      read from                                                       written as
//	key         string, binary, int32 or int64                                  string, or binary if a key is not UTF-8
//	embedding   list of float, double or half (float16); nested or repeated     list of float
//	tags        list of strings, or a string of tags separated by semicolons    list of string
//	payload     string or binary                                                optional binary
//
// Edges have the columns source and target, predictions (see hitRow) also rank, score and
// probability.
//
// parquet-go decodes the footer and writes files. Pages are decoded here (page.go, runs.go,
// source.go), value by value. Of each column, memory holds one decompressed page, its dictionary,
// and one row. Supported are pages of versions 1 and 2; snappy, gzip, zstd, brotli and lz4_raw;
// values that are plain, of a dictionary, split by bytes, or stored as differences, lengths or
// prefixes.
//
// # Untrusted bytes
//
// Every length and count of the footer must fit the bytes that are there, its columns lie at most
// 64 deep, and what its lists take in memory is at most 16 MiB + 8 times the file (check.go):
// parquet-go takes memory for each column times its depth.
//
// A page may declare 16 MiB + 100 times its compressed bytes. It must expand to exactly what it
// declares, and no more is decompressed. Runs, differences and dictionary indexes are read as they
// are needed, so that a run of a billion values takes no memory. All pages that are read, four
// bytes per value and every string, may come to 256 MiB + 256 times the file. A row has at most 32
// MiB of strings.
//
// parquet-go's own decoders of pages are not used because they trust these numbers: a damaged lz4
// page, a run-length of a billion or prefixes of prefixes end the process because memory runs out,
// which no recover can catch. A panic of the library on a damaged footer becomes an error.
//
// # Concurrency
//
// Rows, Table and the writers belong to one goroutine each.
package parquet
