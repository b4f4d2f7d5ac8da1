package images

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

const (
	shaA = "sha256:aa"
	shaB = "sha256:bb"
)

func TestParseLockRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a field too few", "node amd64 deb dash 1", "line 1: got 5 fields"},
		{"a field too many", "# fine\n\nnode amd64 deb dash 1 sha256:aa x", "line 3: got 7 fields"},
		{"an unknown source", "node amd64 pip dash 1 sha256:aa", `unknown source "pip"`},
		{"another source's digest", "node amd64 deb dash 1 sha512-aa", `does not start with "sha256:"`},
		{"a package twice", "node amd64 deb dash 1 sha256:aa\nnode amd64 deb dash 2 sha256:bb",
			`line 2: package "dash" is there twice`},
		{"too much", strings.Repeat("#\n", maxLockSize), "more than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseLock([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestLockFormatIsStable(t *testing.T) {
	lock, err := parseLock([]byte("b arm64 deb z 1 sha256:aa\nb amd64 npm y 2 sha512-b\na arm64 deb x 3 sha256:cc\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := lockHeader + "a arm64 deb x 3 sha256:cc\nb amd64 npm y 2 sha512-b\nb arm64 deb z 1 sha256:aa\n"
	if got := string(lock.format()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzParseLock(f *testing.F) {
	f.Add([]byte("# c\nnode amd64 deb dash 1:2-3+b1 sha256:aa\nnode amd64 npm n 1 sha512-aa==\n"))
	f.Add([]byte("node amd64 deb dash"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lock, err := parseLock(text)
		if err != nil {
			return
		}
		once := lock.format()
		again, err := parseLock(once)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, once)
		}
		if twice := again.format(); !bytes.Equal(once, twice) {
			t.Errorf("got %q, want %q", twice, once)
		}
	})
}

func TestDrift(t *testing.T) {
	deb := func(name, version, digest string) Package {
		return Package{Source: FromDebian, Name: name, Version: version, Digest: digest}
	}
	locked := []Package{deb("dash", "1", shaA)}
	tests := []struct {
		name    string
		got     []Package
		want    []string
		wantErr string
	}{
		{"nothing differs", []Package{deb("dash", "1", shaA)}, nil, ""},
		{"a newer version", []Package{deb("dash", "2", shaB)}, []string{"dash is 2, images.lock says 1"}, ""},
		{"one more package", []Package{deb("dash", "1", shaA), deb("sed", "4", shaB)},
			[]string{"sed 4 is not in images.lock"}, ""},
		{"one package less", nil, []string{"dash of images.lock is missing"}, ""},
		{"a published version that changed", []Package{deb("dash", "1", shaB)}, nil, "dash 1 has the digest sha256:bb"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := drift(locked, test.got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if test.wantErr == "" && err != nil || test.wantErr != "" &&
				(err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("got error %v, want %q", err, test.wantErr)
			}
		})
	}
}
