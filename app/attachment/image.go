package attachment

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/webp"
)

// Limits of a decoded image: its size in memory, and its longest side in pixels. Hosts
// refuse longer sides.
const (
	maxDecoded = 64 << 20
	maxSide    = 8000
)

// decoding limits the number of images in memory, over all runs.
var decoding = make(chan struct{}, 2)

// largeError reports that an image is too large to be shown.
type largeError struct{ width, height int }

func (e *largeError) Error() string {
	return fmt.Sprintf("an image of %d × %d pixels is too large", e.width, e.height)
}

// errTruncated is returned for an incomplete image.
var errTruncated = errors.New("it ends too early")

// cleanImage returns the image without metadata, after having decoded it. Pixels
// stay exactly as they are.
func cleanImage(content []byte, mime string) ([]byte, error) {
	stripped, err := strip(content, mime)
	if err != nil {
		return nil, err
	}
	decoding <- struct{}{}
	defer func() { <-decoding }()
	if err := decode(stripped, mime); err != nil {
		return stripped, err
	}
	return stripped, nil
}

// strip takes an image apart and puts together again what shows it: whatever
// stands between, or behind its end, is left out.
func strip(content []byte, mime string) ([]byte, error) {
	switch mime {
	case "image/png":
		return stripPNG(content)
	case "image/jpeg":
		return stripJPEG(content)
	case "image/gif":
		return stripGIF(content)
	}
	return stripWebP(content)
}

// decode proves that an image is one. It decodes nothing before the size is known.
func decode(content []byte, mime string) (err error) {
	defer func() {
		if p := recover(); p != nil { // decoders of foreign bytes have had their mistakes
			err = fmt.Errorf("the decoder failed: %v", p)
		}
	}()
	switch mime {
	case "image/png":
		return decodeWith(content, png.DecodeConfig, png.Decode)
	case "image/jpeg":
		return decodeWith(content, jpeg.DecodeConfig, jpeg.Decode)
	case "image/gif":
		return decodeGIF(content)
	}
	return decodeWebP(content)
}

func decodeWith(content []byte, config func(io.Reader) (image.Config, error),
	read func(io.Reader) (image.Image, error)) error {
	c, err := config(bytes.NewReader(content))
	if err != nil {
		return err
	}
	if err := checkSize(c.Width, c.Height, c.Width*c.Height*bytesPerPixel(c.ColorModel)); err != nil {
		return err
	}
	_, err = read(bytes.NewReader(content))
	return err
}

// checkSize refuses an image that is too large to be decoded or shown.
func checkSize(width, height, decoded int) error {
	switch {
	case width <= 0 || height <= 0:
		return fmt.Errorf("it has %d × %d pixels", width, height)
	case width > maxSide || height > maxSide || decoded > maxDecoded:
		return &largeError{width, height}
	}
	return nil
}

// bytesPerPixel is what a decoded pixel takes at most.
func bytesPerPixel(model color.Model) int {
	switch model {
	case color.RGBA64Model, color.NRGBA64Model, color.Gray16Model:
		return 8
	}
	return 4
}

// decodeWebP looks at the size of the picture itself before it decodes: the one in the
// header, which DecodeConfig returns, can be another.
func decodeWebP(content []byte) error {
	width, height, err := sizeOfWebP(content)
	if err != nil {
		return err
	}
	if err := checkSize(width, height, width*height*4); err != nil {
		return err
	}
	return decodeWith(content, webp.DecodeConfig, webp.Decode)
}

func decodeGIF(content []byte) error {
	width, height, pixels, err := sizeOfGIF(content)
	if err != nil {
		return err
	}
	if err := checkSize(width, height, max(pixels, width*height)); err != nil {
		return err
	}
	_, err = gif.DecodeAll(bytes.NewReader(content))
	return err
}
