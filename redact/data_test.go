package redact_test

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/redact"
)

// data makes values that look random and are not secrets.
var data = map[string]func(*rand.Rand) string{
	"an MD5":            func(r *rand.Rand) string { s := md5.Sum(noise(r, 9)); return hex.EncodeToString(s[:]) },
	"a commit":          func(r *rand.Rand) string { s := sha1.Sum(noise(r, 9)); return hex.EncodeToString(s[:]) },
	"a short commit":    func(r *rand.Rand) string { return hex.EncodeToString(noise(r, 6)) },
	"a SHA-256":         func(r *rand.Rand) string { s := sha256.Sum256(noise(r, 9)); return hex.EncodeToString(s[:]) },
	"an image's digest": func(r *rand.Rand) string { return "sha256:" + hex.EncodeToString(noise(r, 32)) },
	"an integrity": func(r *rand.Rand) string {
		s := sha512.Sum512(noise(r, 9))
		return "sha512-" +
			b64(string(s[:]))
	},
	"a sum of go.sum": func(r *rand.Rand) string { return "h1:" + base64.StdEncoding.EncodeToString(noise(r, 32)) },
	"a UUID":          func(r *rand.Rand) string { return uuidOf(noise(r, 16)) },
	"a version": func(r *rand.Rand) string {
		return fmt.Sprintf("v%d.%d.%d-rc.%d", r.IntN(9), r.IntN(30), r.IntN(30), r.IntN(9))
	},
	"a pseudo-version": func(r *rand.Rand) string {
		return "v0.0.0-20260102030405-" +
			hex.EncodeToString(noise(r, 6))
	},
	"a file's name": func(r *rand.Rand) string { return "src/pkg" + fmt.Sprint(r.IntN(99)) + "/handler_test.go" },
	"a file with a hash": func(r *rand.Rand) string {
		return "assets/index-" + hex.EncodeToString(noise(r, 4)) +
			".js"
	},
	"a picture": func(r *rand.Rand) string {
		return "data:image/png;base64,iVBORw0KGgo" +
			b64(string(noise(r, 300)))
	},
	"a customer's number": func(r *rand.Rand) string { return "cus_" + generated(r, base62, 14) },
	"an event's number":   func(r *rand.Rand) string { return "evt_" + generated(r, base62, 24) },
	"a document's number": func(r *rand.Rand) string { return "1" + generated(r, base62, 43) },
	"a ULID": func(r *rand.Rand) string {
		return "01" +
			generated(r, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24)
	},
	"a date": func(r *rand.Rand) string {
		return fmt.Sprintf("2026-01-%02dT03:04:05.%06dZ", 1+r.IntN(28), r.IntN(1e6))
	},
	"an ETag": func(r *rand.Rand) string { return `W/` + hex.EncodeToString(noise(r, 16)) },
	"minified code": func(r *rand.Rand) string {
		return "function a(b){return b.c1?d2(e3):f4[" + fmt.Sprint(r.IntN(99)) + "]}"
	},
}

// formsOfData are members and forms in which such values occur. They hold no name of a secret.
var formsOfData = []string{
	`{"id":"%s"}`, `{"commit":"%s","n":1}`, `{"items":[{"id":"%s","state":"open"}]}`, `[["name","value"],["%s","x"]]`,
	`[["/etc/passwd","%s"],["src/secret.go","x"]]`, `{"rows":[["a","%s"],["b","c"]]}`, `{"file":"%s","size":12}`,
	"id,ref,state\n1,%s,open\n", "| ref | state |\n|---|---|\n| %s | open |\n", "ref: %s\nstate: open\n",
	"commit %s\nAuthor: Ann\n", "digest: %s size: 528\n", "%s  file.tar.gz\n", "resolved %s\n", "version = \"%s\"\n",
	"2026-01-02 INFO stored %s in 3ms\n", "const ref = '%s';\n", "<ref>%s</ref>\n", "GET /v1/items/%s HTTP/1.1\n",
	`{"Key":"%s","Size":1}`, `{"cache_key":"%s"}`, `{"primaryKey":"%s"}`, "etag: %s\n", `{"next_page_token":"%s"}`,
	`{"dependencies":{"left-pad":{"version":"1.3.0","integrity":"%s"}}}`,
	"name = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"%s\"\n", "github.com/a/b v1.2.3 %s\n",
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func uuidOf(b []byte) string {
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-4" + s[13:16] + "-a" + s[17:20] + "-" + s[20:]
}

// Issue 23: identifiers, digests, versions, file names, pictures, lock files and minified code are not changed, in
// any of the forms in which they occur, as text and as JSON.
func TestDataIsNotDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 3))
	damaged := map[string]int{}
	for _, kind := range slices.Sorted(maps.Keys(data)) {
		for _, setting := range formsOfData {
			if strings.Contains(setting, `"Key"`) && (kind == "a ULID" || kind == "a document's number") {
				continue // a bare key is more often a credential
			}
			for range 5 {
				text := fmt.Sprintf(setting, data[kind](rng))
				if got, found := redact.New().Bytes([]byte(text)); string(got) != text && secrets(found) > 0 {
					damaged[kind+" in "+setting]++
					t.Logf("%.200q became %.200q", text, got)
				}
				if got, found, err := redact.New().JSON([]byte(text)); err == nil && string(got) != text &&
					secrets(found) > 0 {
					damaged["as JSON: "+kind+" in "+setting]++
				}
			}
		}
	}
	if len(damaged) > 0 {
		t.Errorf("these were damaged: %v", damaged)
	}
}

// secrets counts the findings that are not personal data: the digits of a UUID can be those of a card.
func secrets(found []redact.Finding) int {
	n := 0
	for _, f := range found {
		if !redact.IsPersonal(f.Kind) {
			n += f.Count
		}
	}
	return n
}
