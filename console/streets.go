package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// Streets is the file of streets that the map draws: a PMTiles archive, version 3, with the vector
// tiles of the Protomaps basemap. It may be replaced while it is in use. It is safe for concurrent
// use.
type Streets struct {
	file string
	seen atomic.Pointer[seenFile] // that passed the checks last: browsers read it in many parts
}

type seenFile struct {
	info os.FileInfo
	etag string
}

// OpenStreets returns the streets of a file. It fails if the map cannot draw it.
func OpenStreets(file string) (*Streets, error) {
	s := &Streets{file: file}
	content, _, err := s.Open()
	if err != nil {
		return nil, err
	}
	return s, content.Close()
}

// Open returns the file as it is now, and a strong entity tag of its content. The caller closes it.
func (s *Streets) Open() (content io.ReadSeekCloser, etag string, err error) {
	f, err := os.Open(s.file)
	if err != nil {
		return nil, "", err
	}
	etag, err = s.check(f)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("%s: %w", s.file, err), f.Close())
	}
	return f, etag, nil
}

func (s *Streets) check(f *os.File) (etag string, err error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if seen := s.seen.Load(); seen != nil && os.SameFile(seen.info, info) && seen.info.ModTime().Equal(info.ModTime()) && seen.info.Size() == info.Size() {
		return seen.etag, nil
	}
	if etag, err = checkArchive(f, info.Size()); err != nil {
		return "", err
	}
	s.seen.Store(&seenFile{info, etag})
	return etag, nil
}

// Values of the header of an archive
// (https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md).
const (
	archiveHeader  = 127
	archiveVersion = 3
	vectorTiles    = 1 // Mapbox Vector Tile
	notCompressed  = 1
	gzipCompressed = 2

	// Where it says where they are: an offset and a length.
	rootDirectory   = 8
	metadata        = 24
	leafDirectories = 40
	tileData        = 56
)

const (
	maxSection      = 16 << 20
	streetsLayer    = "roads" // of the Protomaps basemap, which has about ten layers
	streetsProperty = "kind"  // likewise, since version 4
)

// checkArchive returns the entity tag of an archive, which is the same at all instances. It hashes
// header, root directory and metadata only, as the tiles may be gigabytes.
func checkArchive(f io.ReaderAt, size int64) (etag string, err error) {
	header := make([]byte, archiveHeader)
	if n, err := f.ReadAt(header, 0); n < len(header) {
		return "", fmt.Errorf("no PMTiles archive: %w", err)
	}
	if string(header[:7]) != "PMTiles" || header[7] != archiveVersion {
		return "", fmt.Errorf("no PMTiles archive of version %d", archiveVersion)
	}
	section := func(at int) (offset, length uint64) {
		return binary.LittleEndian.Uint64(header[at:]), binary.LittleEndian.Uint64(header[at+8:])
	}
	for _, at := range [...]int{rootDirectory, metadata, leafDirectories, tileData} {
		offset, length := section(at)
		if end := offset + length; end < offset || end > uint64(size) {
			return "", fmt.Errorf("cut short: it has %d bytes, and should have %d or more", size, end)
		}
	}
	if header[99] != vectorTiles {
		return "", errors.New("its tiles are pictures; want vector tiles of the Protomaps basemap")
	}
	for _, compression := range header[97:99] { // of directories and metadata, of tiles
		if compression != notCompressed && compression != gzipCompressed {
			return "", errors.New("compressed in a way that browsers do not unpack; want gzip")
		}
	}
	sum := sha256.New()
	sum.Write(header)
	for _, at := range [...]int{rootDirectory, metadata} {
		offset, length := section(at)
		if length > maxSection {
			return "", fmt.Errorf("its description has %d bytes, at most %d", length, maxSection)
		}
		content := make([]byte, length)
		if _, err := f.ReadAt(content, int64(offset)); err != nil {
			return "", err
		}
		sum.Write(content)
		if at == metadata {
			if err := checkLayers(content, header[97] == gzipCompressed); err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf(`"%x"`, sum.Sum(nil)[:12]), nil
}

// checkLayers returns an error for tiles of another schema: the map would draw nothing of them.
func checkLayers(description []byte, compressed bool) error {
	var content io.Reader = bytes.NewReader(description)
	if compressed {
		unpacked, err := gzip.NewReader(content)
		if err != nil {
			return fmt.Errorf("read metadata: %w", err)
		}
		content = unpacked
	}
	var found struct {
		Layers []struct {
			ID     string         `json:"id"`
			Fields map[string]any `json:"fields"`
		} `json:"vector_layers"`
	}
	if err := json.NewDecoder(io.LimitReader(content, maxSection)).Decode(&found); err != nil {
		return fmt.Errorf("read metadata: %w", err)
	}
	var names []string
	for _, layer := range found.Layers {
		if _, has := layer.Fields[streetsProperty]; layer.ID == streetsLayer && has {
			return nil
		}
		names = append(names, layer.ID)
	}
	if slices.Contains(names, streetsLayer) {
		return errors.New("of an old version of the Protomaps basemap; want version 4")
	}
	return fmt.Errorf("want the layers of the Protomaps basemap, such as %s; it has: %s", streetsLayer, strings.Join(names, ", "))
}
