package main

import (
	"bytes"
	"context"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"motorpool/console/maptest"
)

// Colours of the map's water: see console/src/map/streets.ts.
var (
	waterByDay   = color.NRGBA{0xbf, 0xd8, 0xea, 0xff}
	waterByNight = color.NRGBA{0x13, 0x2b, 0x3e, 0xff}
)

func TestConsole_DrawsStreetsOfAFile(t *testing.T) {
	ctx := browser(t)
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
	world := begin(t, newDir(t), onSharedPostgres(t), func(f *flags) { f.Map = file })
	page := belowAPrefix(t, world.env["BASE_URL"])
	foreign := requestsElsewhere(t, ctx, page)
	do := func(what string, steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, steps...); err != nil {
			page, _ := chromedp.Run(context.WithoutCancel(ctx), chromedp.Evaluate[string]("document.querySelector('.map').dataset.streets + document.body.innerText"))
			t.Fatalf("%s: %v\n%s", what, err, page)
		}
	}
	text := func(selector string) string {
		t.Helper()
		found, err := chromedp.Run(ctx, chromedp.Text(selector))
		if err != nil {
			t.Fatalf("%s: %v", selector, err)
		}
		return found
	}

	signIn := page + strings.TrimPrefix(world.env["CONSOLE_URL"], world.env["BASE_URL"])
	do("sign in", chromedp.Navigate(signIn), chromedp.WaitVisible(`[data-streets="shown"]`))
	if n := pixels(t, ctx, waterByDay); n < 10_000 {
		t.Errorf("%d pixels of water: the tile is not drawn", n)
	}
	if got := text(".maplibregl-ctrl-attrib"); got != "© OpenStreetMap" {
		t.Errorf("the map says that its data is of %q", got)
	}
	do("stations", chromedp.WaitReady(`[data-stations="5"]`), chromedp.WaitVisible(`//ul/li[text()="station"]`))
	do("by night", chromedp.SetValue(`select[aria-label="Theme"]`, "dark"), chromedp.Click(`header .product`),
		chromedp.WaitReady(`.map.dark[data-streets="shown"]`))
	if n := pixels(t, ctx, waterByNight); n < 10_000 {
		t.Errorf("%d pixels of water by night", n)
	}

	broken := maptest.Munich()
	clear(broken[127:150]) // the directory, which follows the header
	replace(broken)
	do("a broken file", chromedp.Reload(), chromedp.WaitVisible(`.map[data-streets="failed"] [role="alert"]`))
	if got := text(`.map [role="alert"]`); !strings.HasPrefix(got, "The streets cannot be read: The file (--map) is damaged.") {
		t.Errorf("of a broken file the map says %q", got)
	}
	if n := pixels(t, ctx, waterByNight); n > 0 {
		t.Errorf("%d pixels of water of a broken file", n)
	}
	replace(maptest.Munich())
	do("try again", chromedp.Click(`.map [role="alert"] button`), chromedp.WaitVisible(`[data-streets="shown"]`), chromedp.WaitNotPresent(`.map [role="alert"]`))
	if got := foreign(); len(got) > 0 {
		t.Errorf("requests that leave the origin: %v", got)
	}
}

func TestConsole_SaysHowToGiveTheMapStreets(t *testing.T) {
	ctx := browser(t)
	world := begin(t, newDir(t), onSharedPostgres(t))
	if err := chromedp.Do(ctx, chromedp.Navigate(world.env["CONSOLE_URL"]), chromedp.WaitVisible(`[data-map="drawn"][data-streets="none"]`)); err != nil {
		t.Fatal(err)
	}
	if about, err := chromedp.Run(ctx, chromedp.Text(".about")); err != nil || !strings.Contains(about, "--map FILE.pmtiles") {
		t.Errorf("%q %v", about, err)
	}
}

// belowAPrefix returns the address of a proxy that serves an installation below a path.
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

// requestsElsewhere returns a function that returns the requests of the browser that did not go to
// an address.
func requestsElsewhere(t *testing.T, ctx context.Context, address string) func() []string {
	t.Helper()
	var mu sync.Mutex
	var elsewhere []string
	if err := chromedp.Listen(ctx, func(event any) {
		sent, ok := event.(*network.EventRequestWillBeSent)
		if !ok || strings.HasPrefix(sent.Request.URL, address+"/") || strings.HasPrefix(sent.Request.URL, "data:") || strings.HasPrefix(sent.Request.URL, "blob:") {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		elsewhere = append(elsewhere, sent.Request.URL)
	}); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return elsewhere
	}
}

// pixels returns how many pixels of the map have a colour.
func pixels(t *testing.T, ctx context.Context, want color.NRGBA) (n int) {
	t.Helper()
	shot, err := chromedp.Run(ctx, chromedp.Screenshot(".map"))
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
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
