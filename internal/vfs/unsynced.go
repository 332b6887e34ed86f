package vfs

// Unsynced returns a file system like base that makes nothing durable, which is much faster. It is
// for tests whose process does not die.
func Unsynced(base FS) FS { return unsynced{base} }

type unsynced struct{ FS }

type unsyncedRoot struct {
	unsynced
	root Root
}

func (u unsyncedRoot) Close() error { return u.root.Close() }

type unsyncedFile struct{ File }

func (unsynced) SyncDir(string) error { return nil }

func (u unsynced) Create(name string) (File, error) { return unsyncedOpen(u.FS.Create(name)) }

func (u unsynced) OpenRW(name string) (File, error) { return unsyncedOpen(u.FS.OpenRW(name)) }

func (u unsynced) OpenRoot(dir string) (Root, error) {
	root, err := u.FS.OpenRoot(dir)
	return unsyncedRoot{unsynced{root}, root}, err
}

func unsyncedOpen(f File, err error) (File, error) { return unsyncedFile{f}, err }

func (unsyncedFile) Sync() error { return nil }
