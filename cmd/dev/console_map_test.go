package main

import (
	"bytes"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"motorpool/console/consoletest"
	"motorpool/console/maptest"
)

// These are the colours of the map's water: see console/src/map/streets.ts.
var (
	waterByDay   = color.NRGBA{0xbf, 0xd8, 0xea, 0xff}
	waterByNight = color.NRGBA{0x13, 0x2b, 0x3e, 0xff}
)

func TestConsole_DrawsStreetsOfAFile(t *testing.T) {
	t.Parallel()
	browser := consoletest.Open(t)
	file := filepath.Join(t.TempDir(), "map.pmtiles")
	replace := func(content []byte) {
		t.Helper()
		next := file + ".next"
		if err := os.WriteFile(next, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	replace(maptest.Munich())
	world := begin(t, t.TempDir(), onSharedPostgres(t), func(f *flags) { f.Map = file })
	base := belowAPrefix(t, world.env["BASE_URL"])
	p := browser.Page(t, base)
	p.Load(base + strings.TrimPrefix(world.env["CONSOLE_URL"], world.env["BASE_URL"]))
	p.See(`[data-streets="shown"]`)
	if n := pixels(p, waterByDay); n < 10_000 {
		t.Errorf("the map has %d pixels of water by day, want at least 10000", n)
	}
	if got := p.See(".maplibregl-ctrl-attrib"); got != "© OpenStreetMap" {
		t.Errorf("the map names the source %q, want © OpenStreetMap", got)
	}
	p.See(`[data-stations="5"]`)
	p.See("li", "station")
	p.Dark(true)
	p.See(`.map.dark[data-streets="shown"]`)
	if n := pixels(p, waterByNight); n < 10_000 {
		t.Errorf("the map has %d pixels of water by night, want at least 10000", n)
	}

	broken := maptest.Munich()
	clear(broken[127:150]) // the directory follows the header
	replace(broken)
	p.Reload()
	p.See(`.map[data-streets="failed"] [role="alert"]`, "The streets cannot be read: The file (--map) is damaged.")
	if n := pixels(p, waterByNight); n > 0 {
		t.Errorf("the map has %d pixels of water of a damaged file, want none", n)
	}
	replace(maptest.Munich())
	p.Click(`.map [role="alert"] button`)
	p.See(`[data-streets="shown"]`)
	p.Gone(`.map [role="alert"]`)
}

// belowAPrefix returns the address of a proxy that serves an installation below a path prefix.
func belowAPrefix(t *testing.T, base string) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	server := httptest.NewServer(http.StripPrefix("/fleet", proxy))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL + "/fleet"
}

// pixels returns the number of pixels of the map with a colour.
func pixels(p *consoletest.Page, want color.NRGBA) (n int) {
	p.Helper()
	picture, err := png.Decode(bytes.NewReader(p.Picture(".map")))
	if err != nil {
		p.Fatal(err)
	}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y++ {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x++ {
			if color.NRGBAModel.Convert(picture.At(x, y)) == want {
				n++
			}
		}
	}
	return n
}
