package attachment

import (
	"errors"
	"fmt"
)

// Inspected is what the bytes of a file are.
type Inspected struct {
	Kind    Kind
	MIME    string
	Note    string // why it does not have the declared type; empty if it does
	Content []byte // the bytes to send: an image without metadata
	// Searchable reports that Content contains plain text, so that secrets can be
	// found and replaced in it.
	Searchable bool
}

// Inspect determines the type of a file from its bytes. mime and name, which the program
// chose, are used only if the bytes do not show a type. An image that cannot be decoded,
// or is too large to be shown, is an ordinary file with a note.
func Inspect(content []byte, mime, name string) Inspected {
	said := announced(mime)
	found := magic(content)
	if len(found) == 0 {
		return inspectOther(content, said, name)
	}
	cleaned, err := clean(content, found)
	var large *largeError
	switch {
	case err == nil:
	case errors.As(err, &large):
		return Inspected{Kind: Other, MIME: found, Note: fmt.Sprintf("not shown: %v; make it smaller", err),
			Content: cleaned}
	default:
		note := fmt.Sprintf("it begins like %s but cannot be decoded (%v), so it is kept as an ordinary file", found,
			err)
		return Inspected{Kind: Other, MIME: unknownType, Note: note, Content: content,
			Searchable: isSearchable(content)}
	}
	kind := Image
	if found[:5] == "audio" {
		kind = Audio
	}
	inspected := Inspected{Kind: kind, MIME: found, Content: cleaned}
	if said != "" && said != found && said != unknownType {
		inspected.Note = fmt.Sprintf("announced as %s, but its bytes are %s", said, found)
	}
	return inspected
}

func inspectOther(content []byte, said, name string) Inspected {
	mime, wrong := otherType(content, said, name)
	inspected := Inspected{Kind: Other, MIME: mime, Content: content, Searchable: isSearchable(content)}
	if wrong {
		if said == "" {
			said = typeOfName(name)
		}
		inspected.Note = fmt.Sprintf("announced as %s, but its bytes are not: it is kept as an ordinary file", said)
	}
	return inspected
}

// clean returns the image or sound without data that is not needed to show it. The error
// is a *largeError if the image is valid but too large.
func clean(content []byte, mime string) ([]byte, error) {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return cleanImage(content, mime)
	case "audio/wav":
		return cleanWAV(content)
	case "audio/mpeg":
		return cleanMP3(content)
	case "audio/flac":
		return cleanFLAC(content)
	}
	return content, nil
}
