package images

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestDebianKeep(t *testing.T) {
	keep := debianKeep([]string{"usr/lib/extra"})
	tests := []struct {
		path string
		want bool
	}{
		{"usr/bin/dash", true},
		{"usr/bin/dpkg", false},
		{"usr/bin/dpkg-deb", false},
		{"usr/bin/debconf-show", false},
		{"usr/lib/x86_64-linux-gnu/libc.so.6", true},
		{"usr/lib/aarch64-linux-gnu/gconv", false},
		{"usr/lib/aarch64-linux-gnu/gconv/UTF-16.so", false},
		{"usr/share/doc/dash/copyright", true},
		{"usr/share/doc/dash/changelog.gz", false},
		{"usr/share/zoneinfo/Europe/Berlin", true},
		{"usr/share/zoneinfo/right/UTC", false},
		{"usr/lib/extra/file", false},
		{"usr/lib/extras", true},
		{"etc", true},
		{"etc/mime.types", true},
		{"etc/ld.so.conf.d/libc.conf", true},
		{"etc/resolv.conf", false},
		{"etc/machine-id", false},
		{"dev/null", false},
		{"var/log/dpkg.log", false},
		{packageList, false},
	}
	for _, test := range tests {
		if got := keep(test.path); got != test.want {
			t.Errorf("%s: got %v, want %v", test.path, got, test.want)
		}
	}
}

func TestParsePackageList(t *testing.T) {
	got, err := parsePackageList([]byte("sed 4.9-1 bb\nusr-is-merged 1 cc\ndash 0.5 aa\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Package{
		{Source: FromDebian, Name: "dash", Version: "0.5", Digest: "sha256:aa"},
		{Source: FromDebian, Name: "sed", Version: "4.9-1", Digest: "sha256:bb"},
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "usr-is-merged 1 cc\n", "dash 0.5\n"} {
		if _, err := parsePackageList([]byte(bad)); err == nil {
			t.Errorf("list %q: got no error", bad)
		}
	}
}

func FuzzParsePackageList(f *testing.F) {
	f.Add([]byte("sed 4.9-1 bb\nusr-is-merged 1 cc\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		packages, err := parsePackageList(text)
		if err == nil && len(packages) == 0 {
			t.Error("got no package and no error")
		}
	})
}

func TestDebianMessages(t *testing.T) {
	var told bytes.Buffer
	say := newProgress(&told, "x")
	messages := &debianMessages{say: say}
	for _, part := range []string{"I: downloading pack", "ages with apt...\nnoise\n", "E: no ", "network\n"} {
		if _, err := messages.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	say.stop()
	if !strings.Contains(told.String(), "x: downloading Debian packages\n") ||
		strings.Contains(told.String(), "noise") {
		t.Errorf("told %q, want the step alone", told.String())
	}
	if got := messages.failure(errors.New("exit status 1")).Error(); !messages.sawError ||
		!strings.Contains(got, "E: no network") {
		t.Errorf("got %q, want what mmdebstrap said", got)
	}
}

func TestAnOrdinaryUserLearnsWhatToInstall(t *testing.T) {
	say := newProgress(nil, "x")
	defer say.stop()
	messages := &debianMessages{say: say}
	if _, err := messages.Write([]byte(noMode + " (use --mode for manual selection)\n")); err != nil {
		t.Fatal(err)
	}
	var missing *MissingToolError
	if err := messages.failure(errors.New("exit status 1")); !errors.As(err, &missing) ||
		missing.Package != "fakechroot" {
		t.Errorf("got %v, want that fakechroot is missing", err)
	}
}
