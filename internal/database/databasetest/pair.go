package databasetest

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Pair is a PostgreSQL server with a synchronous streaming standby, which takes its place when it fails.
type Pair struct {
	t       testing.TB
	hosts   [2]string
	servers [2]Instance
	dirs    [2]string
	primary int
}

// StartPair starts two servers at different IP addresses of this machine, until the test ends.
func StartPair(t testing.TB, first, second string) *Pair {
	t.Helper()
	p := &Pair{t: t, hosts: [2]string{first, second}}
	t.Cleanup(func() {
		for _, s := range p.servers {
			if s.input != nil {
				_ = s.Close() // the server ends
			}
		}
	})
	dir := p.directory(0)
	err := initialize(dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "data", "pg_hba.conf"), []byte("local all all trust\n"+
			"local replication all trust\nhost all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n"), 0o600)
	}
	if err == nil {
		p.servers[0], err = run(dir, "fsync=off", "listen_addresses="+first)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.follow()
	return p
}

// Address returns the URL of the server that accepts writes, whichever it is.
func (p *Pair) Address() string {
	return With("postgres:///postgres", "user", "test", "host", strings.Join(p.hosts[:], ","), "port", "5432,5432",
		"target_session_attrs", "read-write")
}

// Fail kills the server that accepts writes, promotes the standby, and makes another standby.
func (p *Pair) Fail() {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dirs[p.primary], "data", "postmaster.pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	killed := p.servers[p.primary]
	p.primary = 1 - p.primary
	if err := Execute(p.t.Context(), p.servers[p.primary].Address, "SELECT pg_promote()"); err != nil {
		p.t.Fatal(err)
	}
	_ = killed.Close() // its files are removed
	p.follow()
}

// directory makes the directory of a server.
func (p *Pair) directory(i int) string {
	p.t.Helper()
	dir, err := os.MkdirTemp("", "pg") // short: a socket is in it
	if err != nil {
		p.t.Fatal(err)
	}
	p.dirs[i] = dir
	return dir
}

// follow starts the standby as a copy of the other server, which waits for it with each commit from then on.
func (p *Pair) follow() {
	p.t.Helper()
	standby, primary := 1-p.primary, p.servers[p.primary].Address
	dir := p.directory(standby)
	copied, err := command(dir, "pg_basebackup", "--host", p.dirs[p.primary], "--username", "test", "--pgdata",
		filepath.Join(dir, "data"), "--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
	if err != nil {
		p.t.Fatal(err)
	}
	if out, err := copied.CombinedOutput(); err != nil {
		p.t.Fatalf("copying the server: %v\n%s", err, out)
	}
	if p.servers[standby], err = run(dir, "fsync=off",
		"listen_addresses="+p.hosts[standby]); err != nil {
		p.t.Fatal(err)
	}
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if err := Execute(p.t.Context(), primary, statement); err != nil {
			p.t.Fatal(err)
		}
	}
	db, err := sql.Open("pgx", primary)
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	for synchronous := false; !synchronous; time.Sleep(20 * time.Millisecond) { // between two questions
		if err := db.QueryRowContext(p.t.Context(), `SELECT count(*) > 0 FROM pg_stat_replication
			WHERE sync_state = 'sync'`).Scan(&synchronous); err != nil {
			p.t.Fatal(fmt.Errorf("waiting for the standby: %w", err))
		}
	}
}
