package health

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
)

func TestTheEndOfTheCertificateIsAMetric(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2027, 5, 1, 0, 0, 0, 0, time.UTC)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end},
		&x509.Certificate{}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cert.pem")
	h := New(Options{Config: &config.Config{}})
	if got, err := h.certificateEnds(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("without a certificate, got %v (%v)", got, err)
	}
	h.opts.Config.Serve.Certificate = path
	if _, err := h.certificateEnds(t.Context()); err == nil {
		t.Error("a certificate that is missing is no error")
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := h.certificateEnds(t.Context()); err != nil || got[path] != end.Unix() {
		t.Errorf("got %v (%v), want %d", got, err, end.Unix())
	}
}
