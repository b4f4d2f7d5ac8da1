package daemon

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
)

// An address that other machines can reach is opened only if the configuration has a
// certificate or a proxy, and host names.
func TestAddressesBeyondThisMachine(t *testing.T) {
	dir := t.TempDir()
	certificate, key := pair(t, 1)
	for name, text := range map[string][]byte{"cert.pem": certificate, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const tls = "certificate: cert.pem, key: key.pem"
	for name, test := range map[string]struct{ serve, hint string }{
		"every address":            {`listen: "0.0.0.0:0"`, "listen on 127.0.0.1"},
		"every address of IPv6":    {`listen: "[::]:0"`, "listen on 127.0.0.1"},
		"no address":               {`listen: ":0"`, "listen on 127.0.0.1"},
		"a name":                   {`listen: "airlock.example.com:0"`, "listen on 127.0.0.1"},
		"TLS alone":                {`listen: "0.0.0.0:0", ` + tls, "serve.hosts"},
		"a proxy alone":            {`listen: "0.0.0.0:0", proxy: true`, "serve.hosts"},
		"TLS and a name":           {`listen: "0.0.0.0:0", hosts: [airlock.example.com], ` + tls, ""},
		"a proxy and a name":       {`listen: "0.0.0.0:0", hosts: [airlock.example.com], proxy: true`, ""},
		"loopback":                 {`listen: "127.0.0.1:0"`, ""},
		"loopback by its name":     {`listen: "localhost:0"`, ""},
		"another loopback address": {`listen: "127.9.9.9:0"`, ""},
		"a key of no certificate":  {`listen: "127.0.0.1:0", certificate: cert.pem, key: cert.pem`, "belong together"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".yaml")
			if err := os.WriteFile(file, []byte("serve: {"+test.serve+"}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(file, os.LookupEnv)
			if err != nil {
				t.Fatal(err)
			}
			l, err := Listen(t.Context(), c)
			if err == nil {
				l.Close()
			}
			var refused *setup.Error
			if test.hint == "" && err != nil || test.hint != "" &&
				(!errors.As(err, &refused) || !strings.Contains(refused.Advice, test.hint)) {
				t.Errorf("got %v, want the hint %q", err, test.hint)
			}
		})
	}
}

// An address that cannot be opened is a configuration error with advice.
func TestAddressesThatCannotBeOpened(t *testing.T) {
	t.Setenv("AIRLOCK_HOME", t.TempDir())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, hint := range map[string]string{
		taken.Addr().String(): "stop the program that listens there, or name another address: serve.listen, " +
			"--listen; port 0 takes a free one",
		"192.0.2.1:0": "name an address of this machine: serve.listen, --listen", // no machine's (RFC 5737)
	} {
		c := config.Default()
		c.Serve.Listen, c.Serve.Proxy, c.Serve.Hosts = address, true, []string{"airlock.example.com"}
		_, err := Listen(t.Context(), c)
		var refused *setup.Error
		if !errors.As(err, &refused) || refused.Advice != hint {
			t.Errorf("%s: got %v, want the hint %q", address, err, hint)
		}
	}
}
