package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// pair is a certificate for 127.0.0.1 with its key, as PEM.
func pair(t *testing.T, serial int64) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// shown sends a request over TLS and returns the serial number of the certificate and the
// protocol.
func (s *served) shown(settings *tls.Config) (serial int64, protocol string, err error) {
	settings.InsecureSkipVerify = true // the test compares the certificates itself
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true,
		DisableKeepAlives: true}}
	res, err := client.Get(s.url + "/healthz")
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	return res.TLS.PeerCertificates[0].SerialNumber.Int64(), res.Proto, nil
}

// A renewed certificate is used for new connections without a restart. If it cannot be used,
// the old one stays in force.
func TestARenewedCertificateIsShown(t *testing.T) {
	dir := t.TempDir()
	file, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write := func(certificate, private []byte) {
		t.Helper()
		for path, text := range map[string][]byte{file: certificate, key: private} {
			if err := os.WriteFile(path+".new", text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(pair(t, 1))
	s := serve(t, fmt.Sprintf("serve: {certificate: %q, key: %q}\n", file, key))
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("it is reached at %s", s.url)
	}
	if serial, protocol, err := s.shown(&tls.Config{}); serial != 1 || protocol != "HTTP/2.0" || err != nil {
		t.Errorf("got the certificate %d over %s, %v, want the first over HTTP/2.0", serial, protocol, err)
	}
	if serial, _, err := s.shown(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Errorf("TLS 1.1 is answered with the certificate %d", serial)
	}
	if res, err := http.Get(strings.Replace(s.url, "https", "http", 1) + "/healthz"); err == nil {
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: got %d", res.StatusCode)
		}
	}
	untilShown := func(want int64) {
		t.Helper()
		testenv.Await(t, fmt.Sprintf("certificate %d is shown", want), func() bool {
			serial, _, err := s.shown(&tls.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return serial == want
		})
	}
	write(pair(t, 2))
	untilShown(2)
	_, foreign := pair(t, 3)
	if err := os.WriteFile(key, foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.listener.Reread(); err == nil {
		t.Error("a key of another certificate is taken")
	}
	untilShown(2)
	write(pair(t, 4))
	untilShown(4)
}
