package sessionfiles

import (
	"errors"
	"slices"
)

// putPiece is how many bytes of a file Take returns at once.
const putPiece = 2 << 20

// ErrNoFile is returned by Take for a path that was not put, or was taken to its end.
var ErrNoFile = errors.New("there is no such file to take")

// Put keeps a file that the program of the run takes with Take. It counts for the run as if it stayed in the session,
// where it is once the program has saved it. A *LimitError means that the session cannot hold it.
func (r *Run) Put(path string, content []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.saved {
		return &LimitError{"the files of the run are saved already"}
	}
	if err := checkPath(path); err != nil {
		return &LimitError{err.Error()}
	}
	limits := r.store.limits
	bytes, files := r.put.bytes+int64(len(content)), len(r.put.all)+1
	for _, f := range r.given {
		if f.path != path && !r.put.all[f.path] {
			bytes, files = bytes+f.bytes, files+1
		}
	}
	if bytes > limits.Bytes || files > limits.Files {
		return tooMany(bytes, files, limits)
	}
	f := &file{users: 1}
	for piece := range slices.Chunk(content, putPiece) {
		c, err := r.store.write(piece)
		if err != nil {
			r.releaseLocked(f)
			return err
		}
		f.chunks = append(f.chunks, c)
	}
	if r.put.open == nil {
		r.put.open, r.put.all = map[string]*file{}, map[string]bool{}
	}
	r.put.open[path], r.put.all[path] = f, true
	r.put.bytes += int64(len(content))
	return nil
}

// Take returns the next part of a file, and removes it. more is false with the last one.
func (r *Run) Take(path string) (data []byte, more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.put.open[path]
	if f == nil {
		return nil, false, ErrNoFile
	}
	if len(f.chunks) > 0 {
		if data, err = r.store.read(f.chunks[0]); err != nil {
			return nil, false, err
		}
		r.releaseLocked(&file{users: 1, chunks: f.chunks[:1]})
		f.chunks = f.chunks[1:]
	}
	if len(f.chunks) == 0 {
		delete(r.put.open, path)
	}
	return data, len(f.chunks) > 0, nil
}
