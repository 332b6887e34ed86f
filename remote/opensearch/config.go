package opensearch

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb"
)

// A Config says where the nodes are, who asks, and how new versions are stored. Only Addresses is
// required.
type Config struct {
	// Addresses are the base URLs of some or all nodes, such as "https://node1:9200". Calls go to
	// them in turn. They hold no credentials.
	Addresses []string

	// Username and Password are sent by basic authentication. They need https, except to this
	// machine.
	Username, Password string
	// APIKey is sent instead, as "Authorization: ApiKey <key>".
	APIKey string
	// CAFile is a PEM file of the authorities that signed the nodes' certificates, if the system
	// does not know them.
	CAFile string

	// Shards is how many parts a new version has. Default: the number of data nodes.
	Shards int
	// Replicas is how many further copies of each part there are. Default 1, and 0 in a cluster of
	// one data node. Negative means none.
	Replicas int
	// M and EfConstruction are how many neighbours a row has in the graph, and how many candidates
	// are kept to find them. Defaults 16 and 128.
	M, EfConstruction int
}

// Environment variables that FromURL reads. One that ends in _FILE names a file with the value.
const (
	envUsername     = "OPENSEARCH_USERNAME"
	envPassword     = "OPENSEARCH_PASSWORD"
	envPasswordFile = "OPENSEARCH_PASSWORD_FILE"
	envAPIKey       = "OPENSEARCH_API_KEY"
	envAPIKeyFile   = "OPENSEARCH_API_KEY_FILE"
	envCAFile       = "OPENSEARCH_CA_FILE"
)

// FromURL returns the Config for addresses that are joined by commas, such as
// "https://node1:9200,https://node2:9200?shards=3&replicas=1". The parameters after the last one
// are shards, replicas, m and ef_construction. Credentials come from the environment:
// OPENSEARCH_USERNAME, OPENSEARCH_PASSWORD or OPENSEARCH_PASSWORD_FILE, OPENSEARCH_API_KEY or
// OPENSEARCH_API_KEY_FILE, and OPENSEARCH_CA_FILE.
func FromURL(urls string, getenv func(string) string) (Config, error) {
	var c Config
	urls, query, _ := strings.Cut(urls, "?")
	for address := range strings.SplitSeq(urls, ",") {
		if address = strings.TrimSpace(address); address != "" {
			c.Addresses = append(c.Addresses, address)
		}
	}
	if err := c.parameters(query); err != nil {
		return Config{}, err
	}
	var err error
	c.Username, c.CAFile = getenv(envUsername), getenv(envCAFile)
	if c.Password, err = secret(getenv, envPassword, envPasswordFile); err != nil {
		return Config{}, err
	}
	if c.APIKey, err = secret(getenv, envAPIKey, envAPIKeyFile); err != nil {
		return Config{}, err
	}
	_, err = c.addresses()
	return c, err
}

// parameters sets the fields that the query part of a URL may set.
func (c *Config) parameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("opensearch: %w: the part after ? is not a list of parameters", flashdb.ErrInvalid)
	}
	fields := map[string]*int{"shards": &c.Shards, "replicas": &c.Replicas, "m": &c.M, "ef_construction": &c.EfConstruction}
	for name, v := range values {
		field := fields[name]
		if field == nil {
			return fmt.Errorf("opensearch: %w: unknown parameter %q: there are shards, replicas, m and ef_construction", flashdb.ErrInvalid, name)
		}
		n, err := strconv.Atoi(v[len(v)-1])
		if err != nil || n < 0 {
			return fmt.Errorf("opensearch: %w: parameter %s is %q, want a number", flashdb.ErrInvalid, name, v[len(v)-1])
		}
		if *field = n; n == 0 && name == "replicas" {
			*field = -1 // none is asked for, which is not the default
		}
	}
	return nil
}

// secret returns the value of an environment variable, or of the file that another one names.
func secret(getenv func(string) string, name, fileName string) (string, error) {
	value, file := getenv(name), getenv(fileName)
	switch {
	case file == "":
		return value, nil
	case value != "":
		return "", fmt.Errorf("opensearch: %w: both %s and %s are set: unset one", flashdb.ErrInvalid, name, fileName)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("opensearch: read %s: %w", fileName, err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// addresses returns the parsed Addresses. It reports all that is wrong with the Config.
func (c *Config) addresses() (all []*url.URL, _ error) {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("opensearch: %w: "+format, append([]any{flashdb.ErrInvalid}, args...)...))
	}
	secured := c.APIKey != "" || c.Username != "" || c.Password != ""
	for i, address := range c.Addresses {
		u, err := url.Parse(address)
		switch { // an address that may hold a password is not repeated
		case err != nil || strings.Contains(address, "@"):
			fault("address %d is not a URL without credentials: set %s and %s or %s", i+1, envUsername, envPassword, envAPIKey)
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			fault("address %q: want http://host:port or https://host:port", address)
		case u.RawQuery != "" || u.Fragment != "":
			fault("address %q: want no parameters", address)
		case u.Scheme == "http" && secured && !local(u.Hostname()):
			fault("address %q: credentials are sent only over https", address)
		default:
			u.Path = strings.TrimRight(u.Path, "/")
			all = append(all, u)
		}
	}
	if len(c.Addresses) == 0 {
		fault("no address is given")
	}
	if (c.Username == "") != (c.Password == "") {
		fault("a username and a password belong together: set both %s and %s", envUsername, envPassword)
	}
	if c.APIKey != "" && c.Username != "" {
		fault("both an API key and a username are given: leave out one")
	}
	if c.Shards < 0 || c.Shards > 1024 {
		fault("%d shards, want 1 to 1024", c.Shards)
	}
	if c.M < 0 || c.M > 512 || c.EfConstruction < 0 || c.EfConstruction > 3200 {
		fault("m is %d and ef_construction %d, want at most 512 and 3200", c.M, c.EfConstruction)
	}
	return all, errors.Join(errs...)
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
