package opensearch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// env returns a getenv over pairs of names and values.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestFromURL(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	for _, c := range []struct {
		urls string
		env  []string
		want Config
	}{
		{urls: "http://127.0.0.1:9200", want: Config{Addresses: []string{"http://127.0.0.1:9200"}}},
		{
			urls: "https://a:1, https://b:2/opensearch/?shards=3&replicas=2&m=24&ef_construction=200",
			want: Config{Addresses: []string{"https://a:1", "https://b:2/opensearch/"}, Shards: 3, Replicas: 2, M: 24, EfConstruction: 200},
		},
		{urls: "http://a?replicas=0", want: Config{Addresses: []string{"http://a"}, Replicas: -1}},
		{
			urls: "https://a", env: []string{envUsername, "u", envPassword, "p", envCAFile, "ca.pem"},
			want: Config{Addresses: []string{"https://a"}, Username: "u", Password: "p", CAFile: "ca.pem"},
		},
		{
			urls: "https://a", env: []string{envUsername, "u", envPasswordFile, file},
			want: Config{Addresses: []string{"https://a"}, Username: "u", Password: "from a file"},
		},
		{urls: "http://localhost:1", env: []string{envAPIKeyFile, file}, want: Config{Addresses: []string{"http://localhost:1"}, APIKey: "from a file"}},
	} {
		got, err := FromURL(c.urls, env(c.env...))
		require.NoError(t, err, c.urls)
		assert.Equal(t, c.want, got, c.urls)
		_, err = c.want.addresses()
		assert.NoError(t, err)
	}
}

func TestFromURLRefuses(t *testing.T) {
	for _, c := range []struct {
		urls, says string
		env        []string
	}{
		{urls: "", says: "no address"},
		{urls: "a:9200", says: "http://host:port"},
		{urls: "ftp://a", says: "http://host:port"},
		{urls: "http://", says: "http://host:port"},
		{urls: "https://me:hidden@a", says: "without credentials"},
		{urls: "https://me:hid%den@a", says: "without credentials"},
		{urls: "https://a?shard=3", says: `"shard"`},
		{urls: "https://a?shards=x", says: "want a number"},
		{urls: "https://a?shards=-1", says: "want a number"},
		{urls: "https://a?shards=5000", says: "1 to 1024"},
		{urls: "https://a?m=5000", says: "at most 512"},
		{urls: "https://a?m=%zz", says: "list of parameters"},
		{urls: "https://a#b", says: "no parameters"},
		{urls: "http://a", env: []string{envUsername, "me", envPassword, "hidden"}, says: "only over https"},
		{urls: "http://a", env: []string{envAPIKey, "hidden"}, says: "only over https"},
		{urls: "https://a", env: []string{envUsername, "me"}, says: "belong together"},
		{urls: "https://a", env: []string{envPassword, "hidden"}, says: "belong together"},
		{urls: "https://a", env: []string{envUsername, "me", envPassword, "hidden", envAPIKey, "hidden"}, says: "leave out one"},
		{urls: "https://a", env: []string{envPassword, "hidden", envPasswordFile, "x"}, says: "unset one"},
	} {
		_, err := FromURL(c.urls, env(c.env...))
		require.ErrorIs(t, err, flashdb.ErrInvalid, "%s %v", c.urls, c.env)
		assert.ErrorContains(t, err, c.says)
		assert.NotContains(t, err.Error(), "hid", "no credentials in an error")
	}
	_, err := FromURL("https://a", env(envPasswordFile, "/does/not/exist"))
	assert.ErrorContains(t, err, envPasswordFile)
	_, err = New(Config{Addresses: []string{"https://a"}, CAFile: "/does/not/exist"})
	assert.ErrorContains(t, err, "CA file")
	empty := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = New(Config{Addresses: []string{"https://a"}, CAFile: empty})
	assert.ErrorContains(t, err, "no PEM certificate")
}
