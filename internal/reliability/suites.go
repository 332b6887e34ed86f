package main

// A suite is a row of the table: tests of one package, with the settings that say how often they
// try.
type suite struct {
	what string // is tried
	pkg  string
	test string // regular expression of their names
	// settings are environment variables, or flags of the test; counts stand in braces.
	settings []string
}

// suites are the rows. A test tells its count by attempts.Count.
var suites = []suite{
	{"kill the process, at failpoints and at any instant", "./tests", "TestKill", set("FLASHDB_KILLS={kills}")},
	{"kill it at a system call, or fail the call: also those of bbolt", "./tests", "TestSystemCalls", set("FLASHDB_SYSCALLS={syscalls}")},
	{"cut the power before an operation on the disk", "./tests", "TestPowerFailure", nil},
	{"cut the power while the log is written", "./wal", "TestCrashAnywhere", nil},
	{"fail each operation on the disk, once and from then on", "./tests", "TestNthOperationFails", nil},
	{"fail each operation of a backup and of a restore", ".", "TestEveryFailureOfABackup|TestEveryFailureOfARestore", nil},
	{"fill the disk", "./tests", "TestDiskFull", nil},
	{"damage a file of the database at random", "./tests", "TestCorruption", set("FLASHDB_CORRUPTIONS={corruptions}")},
	{"damage headers, tables and borders of its files", "./tests", "TestCorruptionOfFrames", set("FLASHDB_EXHAUSTIVE={exhaustive}")},
	{"damage and cut the log at every byte", "./wal", "TestDamageAtEveryByte|TestTruncationAtEveryByte", nil},
	{"random histories of calls against a model, with crashes, rebuilds and readers beside them", "./tests", "TestModel", set("-rapid.checks={histories}", "-rapid.steps={steps}")},
	{"random histories of the store against a model", "./storage", "TestHistories", nil},
	{"put entries of every kind at every place of the directory", "./tests", "TestStrayEntriesStopNothing", nil},
	{"put a pipe, a socket, a device or a directory in the place of a file", "./tests", "TestIrregularFiles", nil},
	{"cut flash.db or a generation under the process", "./tests", "TestStoreCutAnywhere|TestStoreCutUnderLoad|TestGenerationCutAnywhere", nil},
	{"cut or remove the log under the process", "./tests", "TestLogChangedUnderProcess", nil},
	{"the same before a write of the log and during its sync", "./wal", "TestActiveSegmentChanged", nil},
	{"move, replace or remove the directory or a file under the process", "./tests", "TestDirectoryIsReplaced|TestDirectoryIsRemoved|TestDirectoryComesBack|TestFilesAreReplaced|TestStoreIsReplacedUnderItsOwner", nil},
	{"use up the inodes, turn the disk read-only", "./tests", "TestInodesExhausted|TestDiskTurnsReadOnly|TestReadOnlyFileSystem", nil},
	{"give collections names that lead elsewhere, in flash.db, the log and a backup", "./tests", "TestHostileNames|TestHostileEntries", nil},
	{"craft the pages of flash.db, with right checksums", "./storage", "TestCraftedPages|TestCraftedLeafOfALargeFile", nil},
	{"import hostile pickles and archives", "./internal/codec", "TestHostilePickles|TestHostileArchives", nil},
	{"import hostile Parquet pages and footers", "./cmd/flashdb/internal/parquet", "TestHostilePages|TestHostileFooters", nil},
	{"build and search indexes of extreme rows drawn by chance", "./index/ivf", "TestExtremeRowsByChance", nil},
	{"query collections of extreme rows by every decoder and similarity", ".", "TestExtremeRows", nil},
	{"direct every output into a database, by every way", "./cmd/flashdb", "TestNoOutputIntoADatabase", nil},
}

func set(settings ...string) []string { return settings }
