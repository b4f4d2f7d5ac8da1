// Command dist packs a release: an archive, a Debian package and a software bill
// of materials for each architecture, a container image for all of them, and the checksums.
//
//	dist -root CHECKOUT -programs DIRECTORY -bases DIRECTORY -host AIRLOCK -out DIRECTORY ARCHITECTURE ...
//
// DIRECTORY/ARCHITECTURE holds the programs, and DIRECTORY/base-ARCHITECTURE.tar.gz the Debian of the container image,
// which build/dist/base makes. The same programs and Debians give the same
// files, byte for byte: every time in them is that of SOURCE_DATE_EPOCH
// (reproducible-builds.org/specs/source-date-epoch).
package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// release is what is packed.
type release struct {
	root    string // the checkout
	out     string
	version string
	time    time.Time
	host    string // an airlock that this machine can run
	bases   string // the directory with the Debian of each architecture
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	root := flag.String("root", ".", "the checkout")
	programs := flag.String("programs", "", "the directory with a directory of programs for each architecture")
	bases := flag.String("bases", "", "the directory with the Debian of the container image for each architecture")
	out := flag.String("out", "", "where the files go")
	host := flag.String("host", "", "an airlock of the same commit that this machine can run")
	flag.Parse()
	if *programs == "" || *bases == "" || *out == "" || *host == "" || flag.NArg() == 0 {
		return errors.New("usage: dist -root CHECKOUT -programs DIRECTORY -bases DIRECTORY -host AIRLOCK " +
			"-out DIRECTORY ARCHITECTURE ...")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return errors.New("SOURCE_DATE_EPOCH is not set to seconds since 1970")
	}
	r := &release{root: *root, out: *out, time: time.Unix(seconds, 0).UTC(), host: *host, bases: *bases}
	if r.version, err = r.askVersion(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	layers, err := os.MkdirTemp(r.out, "layers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(layers)
	var made []string
	images := map[string]v1.Image{}
	for _, architecture := range flag.Args() {
		entries, err := r.content(filepath.Join(*programs, architecture))
		if err != nil {
			return fmt.Errorf("packing for %s: %w", architecture, err)
		}
		files, err := r.pack(entries, filepath.Join(*programs, architecture), architecture)
		if err != nil {
			return fmt.Errorf("packing for %s: %w", architecture, err)
		}
		made = append(made, files...)
		if images[architecture], err = r.container(layers, entries, architecture); err != nil {
			return fmt.Errorf("making the container image for %s: %w", architecture, err)
		}
	}
	image, err := r.images(images)
	if err != nil {
		return fmt.Errorf("writing the container image: %w", err)
	}
	wheel, err := r.wheel()
	if err != nil {
		return err
	}
	return r.checksums(append(made, image, wheel))
}

// askVersion asks the program that this machine can run.
func (r *release) askVersion() (string, error) {
	text, err := exec.Command(r.host, "version", "--json").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", r.host, err)
	}
	var answer struct{ Version string }
	if err := json.Unmarshal(text, &answer); err != nil || answer.Version == "" {
		return "", fmt.Errorf("%s told no version: %q", r.host, text)
	}
	return answer.Version, nil
}

// pack makes the files of one architecture and returns their names.
func (r *release) pack(entries []entry, programs, architecture string) ([]string, error) {
	archive := fmt.Sprintf("airlock_%s_linux_%s.tar.gz", r.version, architecture)
	if err := r.archive(archive, entries); err != nil {
		return nil, err
	}
	debian, err := r.debian(entries, architecture)
	if err != nil {
		return nil, err
	}
	bill := fmt.Sprintf("airlock_%s_linux_%s.cdx.json", r.version, architecture)
	return []string{archive, debian, bill}, r.bill(bill, programs)
}

// wheel builds the Python distribution and returns the name of its file.
func (r *release) wheel() (string, error) {
	dir, err := os.MkdirTemp(r.out, "wheel-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(filepath.Join(r.root, "build", "dist", "wheel"), dir)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the wheel of sdk/python: %w", err)
	}
	built, err := filepath.Glob(filepath.Join(dir, "airlock_*.whl"))
	if err != nil || len(built) != 1 {
		return "", fmt.Errorf("building the wheel of sdk/python: got the files %q, want one wheel", built)
	}
	name := filepath.Base(built[0])
	return name, os.Rename(built[0], filepath.Join(r.out, name))
}

// checksums writes SHA256SUMS as sha256sum(1) reads it.
func (r *release) checksums(names []string) error {
	slices.Sort(names)
	var text strings.Builder
	for _, name := range names {
		f, err := os.Open(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sum.Sum(nil), name)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text.String()), 0o644)
}
