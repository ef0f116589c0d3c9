package console_test

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/lab/consoletest"
)

// water is the colour of water in the style of the test.
var water = color.NRGBA{0x00, 0x66, 0xcc, 0xff}

// mapServer serves a MapLibre style, and the PMTiles archive that it draws, as any server of files
// on another origin does. The archive has a lake in the west of Munich's main station.
func mapServer(t *testing.T) (style string, broken *atomic.Bool) {
	broken = new(atomic.Bool)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Headers", "Range")
		w.Header().Set("Access-Control-Expose-Headers", "ETag, Content-Length")
		switch {
		case r.Method == http.MethodOptions:
		case broken.Load():
			http.Error(w, "broken", http.StatusServiceUnavailable)
		case r.URL.Path == "/munich.pmtiles":
			http.ServeFile(w, r, "testdata/munich.pmtiles")
		case r.URL.Path == "/style.json":
			fmt.Fprintf(
				w,
				`{"version":8,"sources":{"streets":{"type":"vector","url":"pmtiles://%s/munich.pmtiles","attribution":"© OpenStreetMap"}},
				"layers":[{"id":"water","type":"fill","source":"streets","source-layer":"water","paint":{"fill-color":"#0066cc"}}]}`,
				server.URL,
			)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/style.json", broken
}

// The installation is another one.
func (d *desk) drawsTheMapStyleOfTheOperator(t *testing.T) {
	style, broken := mapServer(t)
	world := begin(t, "--map-style", style)
	base := belowAPrefix(t, world.env["BASE_URL"])
	p := d.browser.Page(t, base)
	p.Expect("the page requests " + strings.TrimSuffix(style, "style.json"))
	p.Load(base + strings.TrimPrefix(world.env["CONSOLE_URL"], world.env["BASE_URL"]))
	p.See(".numbers")
	p.Open("#/")
	p.See(`[data-streets="shown"]`)
	if n := pixels(p, water); n < 10_000 {
		t.Errorf("the map has %d pixels of water, want at least 10000", n)
	}
	assert.Equal(t, p.See(".maplibregl-ctrl-attrib"), "© OpenStreetMap", "the map names the source")
	p.See(`[data-stations="5"]`)
	p.Dark(true)
	p.See(`.map.dark[data-streets="shown"]`)

	broken.Store(true)
	p.Expect("status of 503")
	p.Reload()
	p.See(`.map[data-streets="failed"] [role="alert"]`, "The map style (--map-style) cannot be read")
	p.See(`[data-stations="5"]`)
	if n := pixels(p, water); n > 0 {
		t.Errorf("the map has %d pixels of water of a style that cannot be read, want none", n)
	}
	broken.Store(false)
	p.Click(`.map [role="alert"] button`)
	p.See(`[data-streets="shown"]`)
	p.Gone(`.map [role="alert"]`)
}

// belowAPrefix returns the address of a proxy that serves an installation below a path prefix.
func belowAPrefix(t *testing.T, base string) string {
	t.Helper()
	target, err := url.Parse(base)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	server := httptest.NewServer(http.StripPrefix("/fleet", proxy))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL + "/fleet"
}

// pixels returns the number of pixels of the map with a colour.
func pixels(p *consoletest.Page, want color.NRGBA) (n int) {
	p.Helper()
	picture, err := png.Decode(bytes.NewReader(p.Picture(".map")))
	require.NoError(p, err)
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y++ {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x++ {
			if color.NRGBAModel.Convert(picture.At(x, y)) == want {
				n++
			}
		}
	}
	return n
}
