package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flashdb/flashdb"
)

// Config says where the server is and how to use it. Only URL must be set.
type Config struct {
	// URL is postgres://user@host:port/database, without a password. The host may be a list:
	// host1:port,host2:port. Settings of libpq may follow, such as sslmode=verify-full,
	// sslrootcert=file and target_session_attrs=read-write. The environment of libpq holds for what
	// is not set: PGHOST, PGUSER, PGSSLMODE and so on.
	URL string
	// Password is that of the user. If it is empty, PGPASSWORD or the password file of libpq
	// (PGPASSFILE) has it.
	Password string
	// Schema is where the tables are. Default flashdb.
	Schema string
	// Connections is the most that are open, at least 2. Default 8.
	Connections int
	// BuildMemory is the most that the server may use to build an index, in bytes. A build that
	// does not fit takes several times as long. Default 1 GiB.
	BuildMemory int64
	// M is the number of neighbours of a row in the index (m of pgvector). Default 16.
	M int
	// EfConstruction is the number of candidates while the index is built (ef_construction of
	// pgvector). Default 128, with which a build takes half as long again as with pgvector's own,
	// 64.
	EfConstruction int
}

// FromURL returns the configuration that a URL describes. Besides the settings of libpq, the URL
// may have schema, connections, build_memory (in MiB), m and ef_construction. The password comes
// from PGPASSWORD or the file that PGPASSFILE names. getenv is os.Getenv outside of tests.
func FromURL(address string, getenv func(string) string) (Config, error) {
	u, err := parseURL(address)
	if err != nil {
		return Config{}, err
	}
	query := u.Query()
	c := Config{Password: getenv("PGPASSWORD"), Schema: query.Get("schema")}
	var faults []error
	number := func(name string) int {
		text := query.Get(name)
		query.Del(name)
		if text == "" {
			return 0
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			faults = append(faults, fmt.Errorf("%w: %s is %q, want a positive number", flashdb.ErrInvalid, name, text))
		}
		return n
	}
	c.Connections, c.M, c.EfConstruction = number("connections"), number("m"), number("ef_construction")
	c.BuildMemory = int64(number("build_memory")) << 20
	query.Del("schema")
	if file := getenv("PGPASSFILE"); file != "" && c.Password == "" && query.Get("passfile") == "" {
		query.Set("passfile", file)
	}
	u.RawQuery = encode(query)
	c.URL = u.String()
	if _, err := c.pool(); err != nil {
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return Config{}, err
	}
	return c, nil
}

// parseURL returns a URL that has no password. Its errors do not quote the URL.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%w: the address of the server is not a URL such as postgres://user@host:5432/database", flashdb.ErrInvalid)
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fmt.Errorf("%w: the address of the server must begin with postgres://", flashdb.ErrInvalid)
	}
	u.RawQuery = strings.ReplaceAll(u.RawQuery, "+", "%2B") // as libpq does
	_, has := u.User.Password()
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: the part after ? of the server's address cannot be read", flashdb.ErrInvalid)
	}
	if has || query.Has("password") || query.Has("sslpassword") {
		return nil, fmt.Errorf("%w: the address of the server has a password, which others could see: set PGPASSWORD or PGPASSFILE instead", flashdb.ErrInvalid)
	}
	return u, nil
}

// encode returns settings as libpq reads them, for which a plus sign is no blank.
func encode(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }

// schemas are the names that need no thought about quotes, case or length.
var schemas = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// withDefaults returns c with the defaults in place, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if c.Schema == "" {
		c.Schema = "flashdb"
	}
	if c.Connections == 0 {
		c.Connections = 8
	}
	if c.BuildMemory == 0 {
		c.BuildMemory = 1 << 30
	}
	if c.M == 0 {
		c.M = 16
	}
	if c.EfConstruction == 0 {
		c.EfConstruction = max(128, 2*c.M)
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{flashdb.ErrInvalid}, args...)...))
	}
	if !schemas.MatchString(c.Schema) || strings.HasPrefix(c.Schema, "pg_") {
		fault("the schema is %q, want lower-case letters, digits and '_', at most 63", c.Schema)
	}
	if c.Connections < 2 {
		fault("connections are %d, want at least 2", c.Connections)
	}
	const least, most = 1 << 20, 1 << 40
	if c.BuildMemory < least || c.BuildMemory > most {
		fault("the memory for building an index is %d bytes, want 1 MiB to 1 TiB", c.BuildMemory)
	}
	if c.M < 2 || c.M > 100 {
		fault("m is %d, want 2 to 100", c.M)
	}
	if c.EfConstruction < 2*c.M || c.EfConstruction > 1000 {
		fault("ef_construction is %d, want twice m, %d, to 1000", c.EfConstruction, 2*c.M)
	}
	return c, errors.Join(faults...)
}

// pool returns the configuration of the connections.
func (c Config) pool() (*pgxpool.Config, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	u, err := parseURL(c.URL)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil { // it quotes the URL, which has no password
		return nil, fmt.Errorf("%w: %w", flashdb.ErrInvalid, err)
	}
	config.MaxConns = int32(min(c.Connections, 10_000))
	config.MinConns = 0
	if c.Password != "" {
		config.ConnConfig.Password = c.Password
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "flashdb"
	}
	return config, nil
}
