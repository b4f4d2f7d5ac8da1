package attachment

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"
)

const script = "<script>alert(document.cookie)</script>"

// picture is small, and not of one colour.
func picture(width, height int) *image.Paletted {
	p := image.NewPaletted(image.Rect(0, 0, width, height),
		color.Palette{color.White, color.Black, color.RGBA{R: 200, A: 255}})
	for i := range p.Pix {
		p.Pix[i] = uint8(i % 3)
	}
	return p
}

func encoded(t testing.TB, mime string) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch mime {
	case "image/png":
		err = png.Encode(&b, picture(20, 10))
	case "image/jpeg":
		err = jpeg.Encode(&b, picture(20, 10), nil)
	case "image/gif":
		err = gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{picture(20, 10), picture(20, 10)}, Delay: []int{5, 5},
			LoopCount: 3})
	case "image/webp":
		return decoded64(t, "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	case "audio/wav":
		b.WriteString("RIFF\x2c\x00\x00\x00WAVEfmt " +
			"\x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00" +
			"data\x08\x00\x00\x00abcdefgh")
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decoded64(t testing.TB, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withMetadata inserts the script into every text field of a format, and after its end.
func withMetadata(t testing.TB, mime string, content []byte) []byte {
	t.Helper()
	text := []byte(script)
	segment := func(marker byte, body string) []byte {
		b := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(body)+2))
		return append(b, body...)
	}
	chunk := func(kind string, body []byte) []byte {
		b := binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(body)))
		b = append(b, body...)
		if len(body)%2 == 1 {
			b = append(b, 0)
		}
		return b
	}
	insert := func(at int, what ...[]byte) []byte {
		return append(append(bytes.Clone(content[:at]), bytes.Join(what, nil)...), content[at:]...)
	}
	var out []byte
	switch mime {
	case "image/png":
		behindHeader := len(pngMagic) + 25
		out = insert(behindHeader, appendChunk(nil, "tEXt", append([]byte("Comment\x00"), text...)),
			appendChunk(nil, "iTXt", text),
			appendChunk(nil, "eXIf", text), appendChunk(nil, "iCCP", text), appendChunk(nil, "zzZz", text),
			appendChunk(nil, "gAMA", text))
		content, out = out, nil
		out = insert(len(content)-12, appendChunk(nil, "IDAT", text)) // a second one, behind the end of the pixels
	case "image/jpeg":
		out = insert(2, segment(0xe0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x05\x03"+script),
			segment(0xe1, "Exif\x00\x00"+script),
			segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00"+script), segment(0xed, script),
			segment(0xee, "Adobe\x00\x64\x00\x00\x00\x00\x00"+script), segment(0xfe, script))
	case "image/gif":
		comment := append([]byte{gifExtension, 0xfe, byte(len(text))}, append(text, 0)...)
		app := append([]byte{gifExtension, gifApp, 11},
			append(append([]byte("XMP DataXMP"), byte(len(text))), append(text, 0)...)...)
		out = insert(len(content)-1, comment, app)
	case "image/webp", "audio/wav":
		content = append(append(append(content, chunk("EXIF", text)...), chunk("XMP ", text)...),
			chunk("LIST", text)...)
		binary.LittleEndian.PutUint32(content[4:], uint32(len(content)-8))
		out = content
	}
	return append(out, script+script...)
}

func TestInspectTakesMetadataOut(t *testing.T) {
	for _, mime := range []string{"image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav"} {
		t.Run(mime, func(t *testing.T) {
			plain := encoded(t, mime)
			got := Inspect(withMetadata(t, mime, bytes.Clone(plain)), "", "x")
			want := Image
			if strings.HasPrefix(mime, "audio/") {
				want = Audio
			}
			if got.Kind != want || got.MIME != mime || got.Note != "" {
				t.Fatalf("got %s %s, note %q; want %s %s", got.Kind, got.MIME, got.Note, want, mime)
			}
			if bytes.Contains(got.Content, []byte("script")) {
				t.Errorf("the text is still there: %q", got.Content)
			}
			if again := Inspect(got.Content, "", "x"); !bytes.Equal(again.Content, got.Content) {
				t.Error("cleaning what is clean changes it")
			}
			if want == Image {
				samePixels(t, plain, got.Content)
			}
		})
	}
}

func samePixels(t *testing.T, a, b []byte) {
	t.Helper()
	before, _, err := image.Decode(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for y := range before.Bounds().Dy() {
		for x := range before.Bounds().Dx() {
			if before.At(x, y) != after.At(x, y) {
				t.Fatalf("the pixel at %d, %d is another", x, y)
			}
		}
	}
}

// bomb returns a PNG with a few bytes whose header has the given size.
func bomb(width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	out := appendChunk([]byte(pngMagic), "IHDR", append(header, 8, 6, 0, 0, 0))
	out = appendChunk(out, "IDAT", []byte("\x78\x9c\x03\x00\x00\x00\x00\x01"))
	return appendChunk(out, "IEND", nil)
}

func TestInspectDecidesByTheBytes(t *testing.T) {
	png, jpeg := encoded(t, "image/png"), encoded(t, "image/jpeg")
	// Issue 27: a chunk that is not needed to show the image can be damaged.
	withChunk := func(kind string) []byte {
		text := appendChunk(nil, kind, []byte("Comment\x00hello"))
		text[len(text)-1] ^= 1
		return slices.Concat(png[:33], text, png[33:]) // behind IHDR
	}
	tests := []struct {
		name, mime, file string
		content          []byte
		kind             Kind
		want             string
		note             string // that the note contains
	}{
		{"a PNG", "image/png", "a.png", png, Image, "image/png", ""},
		{"a PNG with a damaged comment", "image/png", "a.png", withChunk("tEXt"), Image, "image/png", ""},
		{"a PNG with a damaged gamma", "image/png", "a.png", withChunk("gAMA"), Image, "image/png", ""},
		{"a PNG with a damaged palette", "image/png", "a.png", withChunk("PLTE"), Other, "application/octet-stream",
			"a chunk is damaged"},
		{"a PNG that is announced as a text", "text/csv", "a.csv", png, Image, "image/png", "text/csv"},
		{"a PNG that is announced as a JPEG", "image/jpeg", "a.jpg", png, Image, "image/png", "image/jpeg"},
		{"a JPEG under its other name", "image/jpg; q=1", "", jpeg, Image, "image/jpeg", ""},
		{"a text that is announced as an image", "image/png", "a.png", []byte("no image"), Other, "text/plain",
			"its bytes are not"},
		{"a page that is announced as an image", "image/png", "", []byte("<html>" + script), Other, "text/plain",
			"its bytes are not"},
		{"a text that its name calls an image", "", "a.png", []byte("no image"), Other, "text/plain", "image/png"},
		{"random bytes that are announced as an image", "image/png", "", []byte("\x00\x01\x02\xff"), Other,
			"application/octet-stream", "its bytes are not"},
		{"the beginning of a PNG", "image/png", "", png[:len(png)/2], Other, "application/octet-stream",
			"cannot be decoded"},
		{"the magic bytes of a PNG alone", "image/png", "", []byte(pngMagic), Other, "application/octet-stream",
			"cannot be decoded"},
		{"the magic bytes of a JPEG alone", "image/jpeg", "", []byte("\xff\xd8\xff"), Other, "application/octet-stream",
			"cannot be decoded"},
		{"the magic bytes of a GIF alone", "image/gif", "", []byte("GIF89a"), Other, "application/octet-stream",
			"cannot be decoded"},
		{"a text that begins like a GIF", "", "", []byte("GIF89a=1;" + script), Other, "application/octet-stream",
			"cannot be decoded"},
		{"the magic bytes of a WebP alone", "image/webp", "", []byte("RIFF\x04\x00\x00\x00WEBP"), Other,
			"application/octet-stream", "cannot be decoded"},
		{"the magic bytes of a WAV alone", "audio/wav", "", []byte("RIFF\x04\x00\x00\x00WAVE"), Other,
			"application/octet-stream", "cannot be decoded"},
		{"a WebP whose size lies", "image/webp", "", []byte("RIFF\xff\xff\xff\xffWEBPVP8L"), Other,
			"application/octet-stream", "cannot be decoded"},
		{"a PNG of 100000 pixels a side", "image/png", "", bomb(100_000, 100_000), Other, "image/png", "too large"},
		{"an SVG", "image/svg+xml", "a.svg", []byte("<svg onload='alert(1)'/>"), Other, "image/svg+xml", ""},
		{"an SVG that is announced as a PNG", "image/png", "a.png", []byte("<svg onload='alert(1)'/>"), Other,
			"text/plain", "its bytes are not"},
		{"a table", "text/csv", "a.csv", []byte("a,b\n1,2\n"), Other, "text/csv", ""},
		{"a table by its name", "", "a.csv", []byte("a,b\n1,2\n"), Other, "text/csv", ""},
		{"a PDF that is announced as a text", "text/plain", "", []byte("%PDF-1.7\n\xff\xfe\x00"), Other,
			"application/pdf", "its bytes are not"},
		{"a document", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "a.docx",
			[]byte("PK\x03\x04\x00"), Other,
			"application/vnd.openxmlformats-officedocument.wordprocessingml.document", ""},
		{"bytes that say nothing", "", "", []byte("\x00\x01"), Other, "application/octet-stream", ""},
		{"a media type that is none", "text/plain\r\nX: y", "", []byte("hello"), Other, "text/plain", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Inspect(test.content, test.mime, test.file)
			if got.Kind != test.kind || got.MIME != test.want || !strings.Contains(got.Note, test.note) ||
				(test.note == "") != (got.Note == "") {
				t.Errorf("got %s %s, note %q; want %s %s, note with %q", got.Kind, got.MIME, got.Note, test.kind,
					test.want, test.note)
			}
		})
	}
}

func TestInspectShowsNoImageThatIsTooLarge(t *testing.T) {
	var large bytes.Buffer
	if err := png.Encode(&large, picture(maxSide+1, 4)); err != nil {
		t.Fatal(err)
	}
	got := Inspect(withMetadata(t, "image/png", large.Bytes()), "", "")
	if got.Kind != Other || got.MIME != "image/png" || !strings.Contains(got.Note, "8001 × 4") ||
		bytes.Contains(got.Content, []byte("script")) {
		t.Errorf("got %s %s, note %q", got.Kind, got.MIME, got.Note)
	}
	// Many small frames of a GIF are as much as one large one.
	frames := &gif.GIF{}
	for range 20 {
		frames.Image, frames.Delay = append(frames.Image, picture(2000, 2000)), append(frames.Delay, 1)
	}
	var many bytes.Buffer
	if err := gif.EncodeAll(&many, frames); err != nil {
		t.Fatal(err)
	}
	if got := Inspect(many.Bytes(), "", ""); got.Kind != Other || !strings.Contains(got.Note, "too large") {
		t.Errorf("80 million pixels of a GIF: got %s, note %q", got.Kind, got.Note)
	}
}

// The header of a WebP can understate the size of the picture.
func TestInspectBelievesNoHeaderOfAWebP(t *testing.T) {
	for name, chunks := range map[string]string{
		"lossless": "VP8L\x06\x00\x00\x00\x2f\xff\xff\xff\x0f\x00",
		"lossy":    "VP8 \x0a\x00\x00\x00\x10\x00\x00\x9d\x01\x2a\xff\x3f\xff\x3f",
	} {
		content := "RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + chunks
		bytes := []byte(content)
		binary.LittleEndian.PutUint32(bytes[4:], uint32(len(bytes)-8))
		if got := Inspect(bytes, "image/webp", ""); got.Kind != Other || !strings.Contains(got.Note, "too large") {
			t.Errorf("%s: got %s, note %q, want that it is too large", name, got.Kind, got.Note)
		}
	}
}

// Arbitrary bytes cause no crash, and files that are accepted as images can be decoded.
func FuzzInspect(f *testing.F) {
	for _, mime := range []string{"image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav"} {
		f.Add(withMetadata(f, mime, encoded(f, mime)))
	}
	f.Add([]byte("ID3\x03\x00\x00\x00\x00\x00\x02ab\xff\xfb\x90\x00"))
	f.Add([]byte("fLaC\x80\x00\x00\x22" + strings.Repeat("x", 34) + "\xff\xf8"))
	f.Fuzz(func(t *testing.T, content []byte) {
		got := Inspect(content, "", "")
		if got.Kind == Image {
			if _, _, err := image.Decode(bytes.NewReader(got.Content)); err != nil {
				t.Errorf("an image that cannot be decoded: %v", err)
			}
		}
	})
}

func TestSounds(t *testing.T) {
	frame := append([]byte("\xff\xfb\x90\x00"), make([]byte, 413)...) // 128 kbit/s at 44.1 kHz: 417 bytes
	tagged := append([]byte("ID3\x03\x00\x00\x00\x00\x00\x27"+script), append(frame, frame...)...)
	tagged = append(tagged, append([]byte("TAG"+script), make([]byte, 125-len(script))...)...)
	flac := []byte("fLaC\x00\x00\x00\x22" + strings.Repeat("i", 34) + "\x84\x00\x00\x27" + script + "\xff\xf8sound")
	for mime, content := range map[string][]byte{"audio/mpeg": tagged, "audio/flac": flac} {
		got := Inspect(content, mime, "")
		if got.Kind != Audio || got.MIME != mime || bytes.Contains(got.Content, []byte("script")) ||
			len(got.Content) < 40 {
			t.Errorf("%s: got %s %s, note %q, %d bytes", mime, got.Kind, got.MIME, got.Note, len(got.Content))
		}
	}
}
