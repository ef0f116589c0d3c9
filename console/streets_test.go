package console_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/console"
	"motorpool/console/maptest"
)

func TestStreets_AFileIsCheckedWhenTheServiceStarts(t *testing.T) {
	good := maptest.Munich()
	changed := func(change func([]byte)) []byte {
		content := bytes.Clone(good)
		change(content)
		return content
	}
	layers := func(layers ...maptest.Layer) []byte { return maptest.Archive(maptest.Tile{Layers: layers}) }
	old := maptest.Feature{Shape: maptest.Dot, Points: []maptest.Point{{}}, Properties: map[string]string{"pmap:kind": "highway"}}
	for name, c := range map[string]struct {
		content []byte
		want    string // part of the error; empty: no error
	}{
		"Protomaps basemap":        {good, ""},
		"empty":                    {nil, "no PMTiles archive: EOF"},
		"another file":             {bytes.Repeat([]byte("x"), 1000), "no PMTiles archive of version 3"},
		"version 2":                {changed(func(b []byte) { b[7] = 2 }), "no PMTiles archive of version 3"},
		"truncated":                {good[:len(good)-1], "cut short"},
		"section beyond the end":   {changed(func(b []byte) { copy(b[8:], bytes.Repeat([]byte{0xff}, 8)) }), "cut short"},
		"pictures":                 {changed(func(b []byte) { b[99] = 2 }), "its tiles are pictures"},
		"Brotli":                   {changed(func(b []byte) { b[98] = 3 }), "want gzip"},
		"metadata not compressed":  {changed(func(b []byte) { b[97] = 1 }), "read metadata"},
		"another schema":           {layers(maptest.Layer{Name: "transportation"}, maptest.Layer{Name: "water"}), "it has: transportation, water"},
		"version 3 of the basemap": {layers(maptest.Layer{Name: "roads", Features: []maptest.Feature{old}}), "want version 4"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "map.pmtiles")
			place(t, file, c.content)
			_, err := console.OpenStreets(file)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), file+": ")) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := console.OpenStreets(filepath.Join(t.TempDir(), "none.pmtiles")); err == nil || !strings.Contains(err.Error(), "none.pmtiles: no such file") {
		t.Errorf("missing file: %v", err)
	}
}

// place replaces a file by one with the given content.
func place(t *testing.T, file string, content []byte) {
	t.Helper()
	next := file + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, streets *console.Streets) (content io.ReadSeekCloser, etag string) {
	t.Helper()
	content, etag, err := streets.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = content.Close() })
	return content, etag
}

func TestStreets_AFileMayBeReplacedWhileItIsInUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "map.pmtiles")
	before := maptest.Munich()
	place(t, file, before)
	streets, err := console.OpenStreets(file)
	if err != nil {
		t.Fatal(err)
	}
	read, etag := open(t, streets)
	road := maptest.Feature{Shape: maptest.Dot, Points: []maptest.Point{{}}, Properties: map[string]string{"kind": "highway"}}
	place(t, file, maptest.Archive(maptest.Tile{Layers: []maptest.Layer{{Name: "roads", Features: []maptest.Feature{road}}}}))
	if content, err := io.ReadAll(read); err != nil || !bytes.Equal(content, before) {
		t.Errorf("the content of an open file changed: %v", err)
	}
	if _, after := open(t, streets); after == etag {
		t.Errorf("other content has the same entity tag %s", etag)
	}
	place(t, file, []byte("x"))
	if _, _, err := streets.Open(); err == nil {
		t.Error("a file that became invalid is served")
	}
	place(t, file, before)
	if _, after := open(t, streets); after != etag || !strings.HasPrefix(etag, `"`) {
		t.Errorf("entity tags %s and %s of the same content", etag, after)
	}
}

// A load balancer sends the requests of one browser to several instances.
func TestStreets_CopiesOfAFileHaveOneEntityTag(t *testing.T) {
	var tags []string
	for age := range 2 {
		file := filepath.Join(t.TempDir(), "map.pmtiles")
		place(t, file, maptest.Munich())
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-time.Duration(age)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		streets, err := console.OpenStreets(file)
		if err != nil {
			t.Fatal(err)
		}
		_, etag := open(t, streets)
		tags = append(tags, etag)
	}
	if tags[0] != tags[1] {
		t.Errorf("entity tags %v, want one for all copies", tags)
	}
}
