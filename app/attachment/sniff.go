package attachment

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"path"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// types are the media types of common extensions. The first extension of a type
// is the one that files without a name get.
var types = []struct{ extension, mime string }{
	{".png", "image/png"}, {".jpg", "image/jpeg"}, {".jpeg", "image/jpeg"}, {".gif", "image/gif"},
	{".webp", "image/webp"},
	{".svg", "image/svg+xml"}, {".wav", "audio/wav"}, {".mp3", "audio/mpeg"}, {".flac", "audio/flac"},
	{".ogg", "audio/ogg"},
	{".txt", "text/plain"}, {".log", "text/plain"}, {".csv", "text/csv"}, {".tsv", "text/tab-separated-values"},
	{".md", "text/markdown"}, {".html", "text/html"}, {".htm", "text/html"}, {".css", "text/css"},
	{".js", "text/javascript"},
	{".json", "application/json"}, {".geojson", "application/geo+json"}, {".jsonl", "application/x-ndjson"},
	{".ndjson", "application/x-ndjson"},
	{".xml", "application/xml"}, {".yaml", "application/yaml"}, {".yml", "application/yaml"}, {".py", "text/x-python"},
	{".sql", "application/sql"},
	{".pdf", "application/pdf"}, {".zip", "application/zip"}, {".gz", "application/gzip"},
	{".tar", "application/x-tar"},
	{".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{".pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{".parquet", "application/vnd.apache.parquet"}, {".sqlite", "application/vnd.sqlite3"},
	{".db", "application/vnd.sqlite3"},
	{".ics", "text/calendar"}, {".bin", unknownType},
}

// The types of bytes without a detectable type.
const (
	unknownType = "application/octet-stream"
	plainText   = "text/plain"
)

func extensionOf(mime string) string {
	for _, t := range types {
		if t.mime == mime {
			return t.extension
		}
	}
	return ""
}

func typeOfName(name string) string {
	for _, t := range types {
		if t.extension == strings.ToLower(path.Ext(name)) {
			return t.mime
		}
	}
	return ""
}

// mimeForm is a media type without parameters (RFC 6838, section 4.2).
var mimeForm = lazyregexp.New(`^[a-z0-9][a-z0-9!#$&^_.+-]{0,62}/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}$`)

// announced returns the declared media type of a file, or "" if it is missing or invalid.
func announced(mime string) string {
	mime, _, _ = strings.Cut(mime, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	switch mime {
	case "image/jpg", "image/pjpeg":
		return "image/jpeg"
	case "audio/mp3":
		return "audio/mpeg"
	case "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "audio/wav"
	}
	if !mimeForm.MatchString(mime) {
		return ""
	}
	return mime
}

// magic returns the image or audio type that the first bytes show, "" for none.
func magic(content []byte) string {
	switch {
	case bytes.HasPrefix(content, []byte(pngMagic)):
		return "image/png"
	case bytes.HasPrefix(content, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(content, []byte("GIF87a")), bytes.HasPrefix(content, []byte("GIF89a")):
		return "image/gif"
	case isRIFF(content, "WEBP"):
		return "image/webp"
	case isRIFF(content, "WAVE"):
		return "audio/wav"
	case bytes.HasPrefix(content, []byte("ID3")), isMPEGAudio(content):
		return "audio/mpeg"
	case bytes.HasPrefix(content, []byte("fLaC")):
		return "audio/flac"
	case bytes.HasPrefix(content, []byte("OggS")):
		return "audio/ogg"
	}
	return ""
}

func isRIFF(content []byte, form string) bool {
	return len(content) >= 12 && string(content[:4]) == "RIFF" && string(content[8:12]) == form
}

// isMPEGAudio checks for the header of a layer III frame (ISO/IEC 11172-3, section
// 2.4.1.3) and for the next frame after its length.
func isMPEGAudio(content []byte) bool {
	size := mpegFrame(content)
	return size > 0 && (size == len(content) || size < len(content) && mpegFrame(content[size:]) > 0)
}

// mpegFrame returns the length of the frame that content begins with; 0 for none.
func mpegFrame(content []byte) int {
	if len(content) < 4 || content[0] != 0xff || content[1]&0xe0 != 0xe0 || content[1]>>1&3 != 1 {
		return 0
	}
	version, rateIndex, bits := content[1]>>3&3, content[2]>>2&3, int(content[2]>>4)
	if version == 1 || rateIndex == 3 || bits == 0 || bits == 15 {
		return 0
	}
	rate, kilobits, factor := [3]int{44100, 48000, 32000}[rateIndex],
		[16]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0}[bits], 144000
	if version != 3 { // MPEG 2 and 2.5
		rate /= 2
		kilobits, factor = [16]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0}[bits], 72000
	}
	if version == 0 {
		rate /= 2
	}
	return factor*kilobits/rate + int(content[2]>>1&1)
}

// isText reports whether bytes are text: UTF-8 without NUL.
func isText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }

// isSearchable reports whether bytes are text in ASCII or a superset of it.
func isSearchable(content []byte) bool { return bytes.IndexByte(content, 0) < 0 }

// UTF16 returns a text in UTF-16 with a byte order mark as UTF-8; it reports
// whether the bytes are one.
func UTF16(content []byte) (text []byte, ok bool) {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(content)%2 != 0:
		return nil, false
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return nil, false
	}
	units := make([]uint16, 0, len(content)/2)
	for at := 2; at < len(content); at += 2 {
		units = append(units, order.Uint16(content[at:]))
	}
	return []byte(string(utf16.Decode(units))), true
}

// otherType returns the type of a file that is neither image nor audio, and
// whether it was announced as something that its bytes are not.
func otherType(content []byte, said, name string) (mime string, wrong bool) {
	if said == "" {
		said = typeOfName(name)
	}
	found, _, _ := strings.Cut(http.DetectContentType(content), ";")
	switch {
	case isText(content):
		found = plainText
	case strings.HasPrefix(found, "text/"):
		found = unknownType
	case strings.HasPrefix(found, "image/") && magic(content) == "": // icons, bitmaps: no host shows them
	}
	major, _, _ := strings.Cut(said, "/")
	switch {
	case said == "" || said == unknownType && found != plainText:
		return found, false
	case said == "image/svg+xml" && found == plainText:
		return said, false
	case said == found:
		return said, false
	case major == "image", major == "audio", major == "video":
		return found, true
	case major == "text" && found != plainText:
		return found, true
	}
	return said, false
}
