package images

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/images/layer"
)

// mergedUsr are the hooks of mmdebstrap that make /bin, /lib and the like links
// into /usr, as Debian's installer does.
const mergedUsr = "/usr/share/mmdebstrap/hooks/merged-usr"

// packageList is the file in mmdebstrap's archive where listHook notes what was
// downloaded: name, version and SHA-256 in a line.
const packageList = "airlock-packages"

// listHook runs while the downloaded packages are still there; $1 is the root.
const listHook = `for deb in "$1"/var/cache/apt/archives/*.deb; do
	echo "$(dpkg-deb --show --showformat='${Package} ${Version}' "$deb") $(sha256sum <"$deb" | cut -d' ' -f1)"
done >"$1/` + packageList + `"`

// usrIsMerged is an empty placeholder package that mmdebstrap's hooks create.
const usrIsMerged = "usr-is-merged"

// endDelay is how long mmdebstrap may take to clean up after a cancel.
const endDelay = 10 * time.Second

// debianFetch is one use of mmdebstrap.
type debianFetch struct {
	Debian
	arch   string // Debian's name of the architecture, which is also Go's
	mirror string // where packages come from; empty: Debian's own place
	say    *progress
}

// extract extracts the packages below dir and returns them.
func (f debianFetch) extract(ctx context.Context, dir string) ([]Package, error) {
	return f.fetch(ctx, dir, debianKeep(f.Drop))
}

// list returns the current versions of the packages. dir must be an empty directory.
func (f debianFetch) list(ctx context.Context, dir string) ([]Package, error) {
	return f.fetch(ctx, dir, func(string) bool { return false })
}

func (f debianFetch) fetch(ctx context.Context, dir string, keep func(name string) bool) ([]Package, error) {
	consume := func(archive io.Reader) error {
		withList := func(name string) bool { return name == packageList || keep(name) }
		if err := layer.Unpack(ctx, archive, dir, withList); err != nil {
			return err
		}
		// The archive ends in padding; mmdebstrap must not meet a closed pipe.
		_, err := io.Copy(io.Discard, archive)
		return err
	}
	if err := f.mmdebstrap(ctx, consume); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, packageList)
	list, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the list of packages: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return nil, fmt.Errorf("removing the list of packages: %w", err)
	}
	return parsePackageList(list)
}

// mmdebstrap runs the program mmdebstrap and passes its archive to consume. Packages are
// downloaded, checked against Debian's signatures and extracted, but not installed, so none of
// their scripts run and root is not needed.
func (f debianFetch) mmdebstrap(ctx context.Context, consume func(io.Reader) error) error {
	program, err := findTool("mmdebstrap", "mmdebstrap")
	if err != nil {
		return err
	}
	args := []string{
		"--variant=extract", "--architectures=" + f.arch, "--include=" + strings.Join(f.Packages, ","),
		"--hook-directory=" + mergedUsr, "--extract-hook=" + listHook, f.Suite, "-",
	}
	if f.mirror != "" {
		args = append(args, f.mirror)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	// It removes its temporary directory when asked to end, but not when killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endDelay
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", layer.Epoch), "LC_ALL=C")
	messages := &debianMessages{say: f.say}
	cmd.Stderr = messages
	archive, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("starting mmdebstrap: %w", err)
	}
	consumeErr := consume(archive)
	if consumeErr != nil {
		cancel() // the rest is not read
	}
	if err := cmd.Wait(); err != nil && (consumeErr == nil || messages.sawError) {
		return messages.failure(err)
	}
	return consumeErr
}

func parsePackageList(text []byte) ([]Package, error) {
	var packages []Package
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) != 3 {
			return nil, fmt.Errorf("mmdebstrap listed a package as %.200q", scanner.Text())
		}
		if fields[0] != usrIsMerged {
			packages = append(packages, Package{Source: FromDebian, Name: fields[0], Version: fields[1],
				Digest: "sha256:" + fields[2]})
		}
	}
	if len(packages) == 0 {
		return nil, errors.New("mmdebstrap listed no package")
	}
	sortPackages(packages)
	return packages, scanner.Err()
}
