package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// debian writes the Debian package that packaging/debian/package.yaml describes and
// returns its name.
func (r *release) debian(entries []entry, architecture string) (_ string, err error) {
	description, err := os.Open(filepath.Join(r.root, "packaging/debian/package.yaml"))
	if err != nil {
		return "", err
	}
	defer description.Close()
	config, err := nfpm.Parse(description)
	if err != nil {
		return "", err
	}
	info := nfpm.WithDefaults(&config.Info)
	info.Arch, info.Platform, info.Version, info.Prerelease, info.Release, info.MTime = architecture, "linux",
		r.version, "", "1", r.time
	info.Deb.Compression = "zstd"
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		*script = filepath.Join(r.root, *script)
	}
	staged, err := os.MkdirTemp("", "airlock-dist-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staged)) }()
	if info.Contents, err = r.stage(entries, staged); err != nil {
		return "", err
	}
	if err := nfpm.Validate(info); err != nil {
		return "", err
	}
	name := deb.Default.ConventionalFileName(info)
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	return name, errors.Join(deb.Default.Package(info, f), f.Close())
}

// stage writes the entries of a system below dir, where nfpm reads them.
func (r *release) stage(entries []entry, dir string) (files.Contents, error) {
	var contents files.Contents
	for _, e := range entries {
		switch {
		case e.system == "":
		case e.link != "":
			contents = append(contents, &files.Content{Source: e.link, Destination: e.system, Type: files.TypeSymlink,
				FileInfo: &files.ContentFileInfo{MTime: r.time}})
		default:
			at := filepath.Join(dir, e.system)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(at, e.installed(), e.mode); err != nil {
				return nil, err
			}
			kind := files.TypeFile
			if strings.HasPrefix(e.system, "/etc/") { // an upgrade keeps what the operator changed
				kind = files.TypeConfig
			}
			contents = append(contents, &files.Content{Source: at, Destination: e.system, Type: kind,
				FileInfo: &files.ContentFileInfo{Mode: e.mode, MTime: r.time, Owner: "root", Group: "root"}})
		}
	}
	return contents, nil
}
