package storage

import (
	"fmt"
	"regexp"
	"strings"
)

// collectionName is the shape of a collection's name. It names a directory of index files, so that
// no name may be a path, on any system.
var collectionName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// CheckCollectionName returns an error if name cannot be the name of a collection. It is called
// wherever a name is read: in an operation of the log, in the bbolt file, and in an entry of a
// backup.
func CheckCollectionName(name string) error {
	if collectionName.MatchString(name) {
		return nil
	}
	if len(name) > 80 {
		name = name[:80] + "..."
	}
	return fmt.Errorf("name %q: use 1 to 64 letters, digits, dots, dashes and underscores, the first a letter, digit or underscore", name)
}

// reservedName matches the names that Windows gives to devices, whatever follows the first dot.
var reservedName = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// CheckNewCollectionName is CheckCollectionName for a collection to be created. It also refuses
// names that cannot be names of separate directories on every system, because databases are copied
// between systems. Names that earlier versions accepted stay valid.
func CheckNewCollectionName(name string) error {
	if err := CheckCollectionName(name); err != nil {
		return err
	}
	switch {
	case reservedName.MatchString(name):
		return fmt.Errorf("name %q: Windows keeps it for a device", name)
	case strings.HasSuffix(name, "."):
		return fmt.Errorf("name %q: Windows takes no dot at the end", name)
	}
	return nil
}

// CollectionLike returns the name of the collection that has this one, or one that differs from it
// only in case: where file names have no case the two would share an index directory.
func (c *Changes) CollectionLike(name string) (other string, ok bool) {
	if c.catalog.byName[name] != nil {
		return name, true
	}
	for other := range c.catalog.byName {
		if strings.EqualFold(other, name) {
			return other, true
		}
	}
	return "", false
}
