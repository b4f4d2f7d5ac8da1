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
	"path"
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

// usrIsMerged is a stand-in that mmdebstrap's hooks make up; it has no content.
const usrIsMerged = "usr-is-merged"

// dropped are the paths that no image needs: package management, documents and
// translations, and what differs from build to build. Copyright files stay.
var dropped = []string{
	packageList,
	"boot", "dev", "home", "lib32", "libx32", "media", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "var",
	"usr/games", "usr/include", "usr/lib32", "usr/libx32", "usr/local", "usr/sbin", "usr/src",
	"usr/bin/deb-systemd-helper", "usr/bin/deb-systemd-invoke", "usr/lib/dpkg", "usr/lib/systemd", "usr/lib/tmpfiles.d",
	"usr/share/debconf", "usr/share/debianutils", "usr/share/dpkg", "usr/share/info", "usr/share/lintian", "usr/share/locale",
	"usr/share/man", "usr/share/menu", "usr/share/perl5", "usr/share/polkit-1", "usr/share/bug", "usr/share/base-files",
	"usr/share/applications", "usr/share/pixmaps", "usr/share/doc-base",
	"usr/share/zoneinfo/posix", "usr/share/zoneinfo/right",
}

// keptConfig are the only files of Debian's /etc: the others come from the
// building machine or serve programs that are not there.
var keptConfig = []string{"etc/debian_version", "etc/ld.so.conf", "etc/ld.so.conf.d", "etc/mime.types", "etc/os-release", "etc/python3.11"}

// debianKeep says which paths of Debian's archive go into the image.
func debianKeep(drop []string) func(name string) bool {
	return func(name string) bool {
		switch {
		case layer.Under(name, dropped...), layer.Under(name, drop...):
			return false
		case layer.Under(name, "etc"):
			return name == "etc" || layer.Under(name, keptConfig...)
		case layer.Under(name, "usr/share/doc"):
			return path.Base(name) == "copyright"
		case path.Dir(name) == "usr/bin":
			return !strings.HasPrefix(path.Base(name), "dpkg") && !strings.HasPrefix(path.Base(name), "debconf")
		}
		return true
	}
}

// mmdebstrap runs the program of that name and hands its archive to consume.
// Nothing is installed: packages are downloaded, checked against Debian's
// signatures and extracted, so no script of theirs runs and root is not needed.
func mmdebstrap(ctx context.Context, def Debian, arch, mirror string, say *progress, consume func(io.Reader) error) error {
	program, err := findTool("mmdebstrap", "mmdebstrap")
	if err != nil {
		return err
	}
	args := []string{
		"--variant=extract", "--architectures=" + arch, "--include=" + strings.Join(def.Packages, ","),
		"--hook-directory=" + mergedUsr, "--extract-hook=" + listHook, def.Suite, "-",
	}
	if mirror != "" {
		args = append(args, mirror)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	// It removes its temporary folder when asked to end, but not when killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endDelay
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", layer.Epoch), "LC_ALL=C")
	messages := &debianMessages{say: say}
	cmd.Stderr = messages
	archive, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting mmdebstrap: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting mmdebstrap: %w", err)
	}
	consumeErr := consume(archive)
	if consumeErr != nil {
		cancel() // nobody reads the rest
	}
	if err := cmd.Wait(); err != nil && (consumeErr == nil || messages.sawError) {
		return messages.failure(err)
	}
	return consumeErr
}

// extractDebian puts the packages of def below dir and returns what they were.
func extractDebian(ctx context.Context, def Debian, arch, mirror, dir string, say *progress) ([]Package, error) {
	var list []byte
	keep := debianKeep(def.Drop)
	consume := func(archive io.Reader) error {
		takeList := func(name string) bool { return name == packageList || keep(name) }
		if err := layer.Unpack(ctx, archive, dir, takeList); err != nil {
			return err
		}
		var err error
		if list, err = os.ReadFile(filepath.Join(dir, packageList)); err != nil {
			return fmt.Errorf("reading the list of packages: %w", err)
		}
		// Debian's archive ends in padding; mmdebstrap must not meet a closed pipe.
		_, err = io.Copy(io.Discard, archive)
		return errors.Join(err, os.Remove(filepath.Join(dir, packageList)))
	}
	if err := mmdebstrap(ctx, def, arch, mirror, say, consume); err != nil {
		return nil, err
	}
	return parsePackageList(list)
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
			packages = append(packages, Package{Source: FromDebian, Name: fields[0], Version: fields[1], Digest: "sha256:" + fields[2]})
		}
	}
	if len(packages) == 0 {
		return nil, errors.New("mmdebstrap listed no package")
	}
	sortPackages(packages)
	return packages, scanner.Err()
}

// debianSteps are the lines of mmdebstrap that mark a step worth telling.
var debianSteps = map[string]string{
	"I: running apt-get update...":               "reading Debian's package lists",
	"I: downloading packages with apt...":        "downloading Debian packages",
	"I: extracting archives...":                  "extracting Debian packages",
	"I: creating tarball...":                     "collecting files",
	"I: cleaning package lists and apt cache...": "cleaning up",
}

// endDelay is how long mmdebstrap may take to clean up after a cancel.
const endDelay = 10 * time.Second

// maxMessages is how many of mmdebstrap's last lines are kept for a failure.
const maxMessages = 12

// debianMessages reads mmdebstrap's stderr: it tells the steps and keeps the
// last lines, which say why it failed. It is used by one goroutine at a time.
type debianMessages struct {
	say      *progress
	partial  []byte
	last     []string
	sawError bool // it said what went wrong
}

// Write takes a part of the output.
func (m *debianMessages) Write(p []byte) (int, error) {
	m.partial = append(m.partial, p...)
	for {
		line, rest, ok := bytes.Cut(m.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		m.partial = rest
		m.line(strings.TrimSpace(string(line)))
	}
}

func (m *debianMessages) line(line string) {
	if step, ok := debianSteps[line]; ok {
		m.say.step(step)
	}
	m.sawError = m.sawError || strings.HasPrefix(line, "E: ")
	if m.last = append(m.last, line); len(m.last) > maxMessages {
		m.last = m.last[1:]
	}
}

// failure adds the last lines to mmdebstrap's error.
func (m *debianMessages) failure(err error) error {
	return fmt.Errorf("mmdebstrap could not fetch the Debian packages: %w\n  %s", err, strings.Join(m.last, "\n  "))
}
