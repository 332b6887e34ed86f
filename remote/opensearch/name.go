package opensearch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// The names of indexes and aliases begin with these. No two of them can be equal, as the part after
// the first seven letters differs.
const (
	indexPrefix  = "flashdb-"
	livePrefix   = "flashdb_live-"
	formerPrefix = "flashdb_was-"
	writePrefix  = "flashdb_to-"
)

// versionLength is the length of a version: 16 lower-case hexadecimal digits.
const versionLength = 16

// encode returns the part of a name that stands for a collection. Different collections have
// different ones.
func encode(collection string) (string, error) {
	var b strings.Builder
	for _, r := range collection {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
			b.WriteRune(r)
		case r >= 'A' && r <= 'Z':
			b.WriteByte('_')
			b.WriteRune(r - 'A' + 'a')
		case r == '_':
			b.WriteString("__")
		default:
			return "", fmt.Errorf("opensearch: collection %q: %w: a name has letters, digits, dots, dashes and underscores", collection, flashdb.ErrInvalid)
		}
	}
	if len(collection) == 0 || len(collection) > 64 {
		return "", fmt.Errorf("opensearch: collection %q: %w: a name has 1 to 64 characters", collection, flashdb.ErrInvalid)
	}
	return b.String(), nil
}

// place holds the names of a version.
type place struct {
	collection string // as names have it
	index      string
	write      string // the alias for writes
	live       string // the alias of the collection's live version
	former     string // the alias of its versions that were live, and are to be dropped
}

func placeOf(n remote.Name) (place, error) {
	collection, err := encode(n.Collection)
	if err != nil {
		return place{}, err
	}
	if !isVersion(n.Version) {
		return place{}, fmt.Errorf("opensearch: version %q: %w: want %d lower-case hexadecimal digits", n.Version, flashdb.ErrInvalid, versionLength)
	}
	return place{
		collection: collection,
		index:      indexPrefix + collection + "-" + n.Version,
		write:      writePrefix + collection + "-" + n.Version,
		live:       livePrefix + collection,
		former:     formerPrefix + collection,
	}, nil
}

func isVersion(s string) bool {
	return len(s) == versionLength && strings.Trim(s, "0123456789abcdef") == ""
}

// versionOf returns the version of a collection that an index holds, or false for other indexes.
func versionOf(index, collection string) (string, bool) {
	version, ok := strings.CutPrefix(index, indexPrefix+collection+"-")
	return version, ok && isVersion(version)
}

// describing is the _id of the document that describes a version. No row has it.
const describing = "version"

// idOf returns the _id of a row, which OpenSearch limits to 512 bytes.
func idOf(key string) string {
	const most = 512
	if len(key) < most {
		return "k" + key
	}
	sum := sha256.Sum256([]byte(key))
	return "h" + hex.EncodeToString(sum[:])
}
