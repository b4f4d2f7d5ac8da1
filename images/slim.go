package images

import (
	"path"
	"slices"

	"github.com/airlock-mcp/airlock/images/layer"
)

// dropped are patterns (path.Match) of paths that no image needs: package management,
// documents and translations, and files that differ between builds. Everything below a dropped
// path is dropped too.
var dropped = []string{
	packageList,
	"boot", "dev", "home", "lib32", "libx32", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys", "tmp",
	"var",
	"usr/games", "usr/include", "usr/lib32", "usr/libx32", "usr/local", "usr/sbin", "usr/src",
	"usr/bin/deb*", "usr/bin/dpkg*", "usr/bin/ldd", "usr/bin/py3*", "usr/bin/pygettext*", "usr/bin/tzselect",
	"usr/bin/update-alternatives",
	"usr/lib/binfmt.d", "usr/lib/dpkg", "usr/lib/systemd", "usr/lib/tmpfiles.d", "usr/lib/valgrind",
	"usr/lib/*-linux-gnu/engines-3", "usr/lib/*-linux-gnu/gconv", "usr/lib/*-linux-gnu/krb5",
	"usr/libexec/dpkg",
	"usr/share/applications", "usr/share/base-files", "usr/share/bash-completion", "usr/share/binfmts", "usr/share/bug",
	"usr/share/debconf", "usr/share/debianutils", "usr/share/dict", "usr/share/doc-base", "usr/share/dpkg",
	"usr/share/info",
	"usr/share/libc-bin", "usr/share/lintian", "usr/share/locale", "usr/share/man", "usr/share/menu", "usr/share/misc",
	"usr/share/perl5", "usr/share/pixmaps", "usr/share/polkit-1", "usr/share/python3", "usr/share/readline",
	"usr/share/zoneinfo/posix", "usr/share/zoneinfo/right",
}

// keptConfig are the only files of Debian's /etc: the others come from the
// building machine or serve programs that are not there.
var keptConfig = []string{"etc", "etc/debian_version", "etc/ld.so.conf*", "etc/ld.so.conf.d/*", "etc/mime.types",
	"etc/os-release"}

// debianKeep returns a function that selects the paths of Debian's archive for the image.
// Copyright files stay.
func debianKeep(drop []string) func(name string) bool {
	drop = slices.Concat(dropped, drop)
	return func(name string) bool {
		switch {
		case pathMatches(name, drop):
			return false
		case layer.Under(name, "etc"):
			return slices.ContainsFunc(keptConfig, func(pattern string) bool { return matches(pattern, name) })
		case layer.Under(name, "usr/share/doc"):
			return path.Base(name) == "copyright"
		}
		return true
	}
}

// pathMatches reports whether name or a directory above it matches one of the patterns.
func pathMatches(name string, patterns []string) bool {
	for ; name != "."; name = path.Dir(name) {
		if slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) }) {
			return true
		}
	}
	return false
}

// matches is path.Match for the patterns of this package, which are well formed.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
