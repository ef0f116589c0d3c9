package console_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"motorpool/console"
	"motorpool/internal/assert"
	"motorpool/internal/require"
)

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	h, err := console.New("/console/", "")
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPage_LoadsOnlyFilesOfTheProgram(t *testing.T) {
	page := get(t, "/console/")
	if page.Code != 200 || page.Header().Get("Content-Type") != "text/html; charset=utf-8" ||
		page.Header().Get("Cache-Control") != "no-cache" {
		t.Fatalf("the page has the status %d and the header %v", page.Code, page.Header())
	}
	links := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(links) < 3 {
		t.Fatalf("the page has the links %v, want at least 3", links)
	}
	for _, link := range links {
		relative, ok := strings.CutPrefix(link[1], "./")
		if !ok {
			t.Errorf("%s is not relative: it does not work below a path prefix", link[1])
			continue
		}
		file := get(t, "/console/"+relative)
		if file.Code != 200 || file.Header().Get("Content-Type") == "" {
			t.Errorf("%s: status %d, header %v", relative, file.Code, file.Header())
		}
		if strings.HasPrefix(relative, "assets/") != (file.Header().Get("Cache-Control") == "public, max-age=31536000, immutable") {
			t.Errorf("%s is cached as %q", relative, file.Header().Get("Cache-Control"))
		}
	}
	_, body, _ := strings.Cut(page.Body.String(), "<body>")
	if !strings.Contains(body, "<noscript>") || !strings.Contains(body, "<p role") {
		t.Errorf("the page is blank while it is loaded:\n%s", body)
	}
	if strings.Contains(page.Body.String(), "<script>") || strings.Contains(page.Body.String(), "<style") ||
		strings.Contains(page.Body.String(), "://") {
		t.Errorf("the page has inline content or an address of another host:\n%s", page.Body)
	}
}

func TestPolicy_AllowsNothingInlineOrOfOtherHosts(t *testing.T) {
	policy := get(t, "/console/").Header().Get("Content-Security-Policy")
	for _, word := range []string{"default-src 'none'", "frame-ancestors 'none'", "script-src 'self';", "connect-src 'self';"} {
		if !strings.Contains(policy, word) {
			t.Errorf("the policy %q lacks %q", policy, word)
		}
	}
	for _, word := range []string{"unsafe", "*", "http"} {
		if strings.Contains(policy, word) {
			t.Errorf("the policy %q has %q", policy, word)
		}
	}
}

func TestFiles_UnchangedOneIsNotSentAgain(t *testing.T) {
	etag := get(t, "/console/").Header().Get("ETag")
	if again := get(t, "/console/", "If-None-Match", etag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("a request with the entity tag: status %d with %d bytes, want 304 without content", again.Code, again.Body.Len())
	}
	for _, path := range []string{"/console/x", "/console/../console.go", "/other/", "/console/assets/"} {
		assert.Equal(t, get(t, path).Code, http.StatusNotFound, "%s: status", path)
	}
}

func TestFiles_AreSentCompressed(t *testing.T) {
	plain := get(t, "/console/")
	packed := get(t, "/console/", "Accept-Encoding", "br;q=1, gzip;q=0.8")
	if packed.Header().Get("Content-Encoding") != "gzip" || packed.Header().Get("Vary") != "Accept-Encoding" ||
		packed.Header().Get("ETag") == plain.Header().Get("ETag") {
		t.Fatalf("compressed header %v, uncompressed %v", packed.Header(), plain.Header())
	}
	r, err := gzip.NewReader(packed.Body)
	require.NoError(t, err)
	if content, err := io.ReadAll(r); err != nil || !bytes.Equal(content, plain.Body.Bytes()) {
		t.Errorf("decompressed as %q, %v", content, err)
	}
	if w := get(t, "/console/", "Accept-Encoding", "*"); w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("Accept-Encoding *: header %v, want gzip", w.Header())
	}
	for _, header := range []string{"", "identity", "gzip;q=0", "gzip;q=0.0", "br"} {
		if w := get(t, "/console/", "Accept-Encoding", header); w.Header().Get("Content-Encoding") != "" {
			t.Errorf("Accept-Encoding %q: header %v, want no encoding", header, w.Header())
		}
	}
}

// What browsers may load, in bytes as they are sent: on a slow connection the first page must be
// visible before the map has loaded.
const (
	firstLoad   = 75_000 // until a person who is signed in sees the first page
	furtherPage = 30_000 // what a page adds to the console without one
	everything  = 800_000
)

// chunk is what Vite writes of a file that it built.
type chunk struct {
	File           string
	Imports        []string // other chunks
	CSS            []string // files
	IsEntry        bool
	IsDynamicEntry bool
}

func TestConsole_LoadsLittleUntilAPageIsShown(t *testing.T) {
	manifest, err := os.ReadFile("dist/.vite/manifest.json")
	require.NoError(t, err)
	var chunks map[string]chunk
	require.NoError(t, json.Unmarshal(manifest, &chunks))
	// size returns the bytes and files of the chunks of some sources, with all that these import.
	size := func(without map[string]bool, sources ...string) (int, map[string]bool) {
		files := map[string]bool{}
		var add func(source string)
		add = func(source string) {
			c, ok := chunks[source]
			if !ok {
				t.Fatalf("nothing was built from %s", source)
			}
			if files[c.File] {
				return
			}
			files[c.File] = true
			for _, file := range c.CSS {
				files[file] = true
			}
			for _, source := range c.Imports {
				add(source)
			}
		}
		for _, source := range sources {
			add(source)
		}
		total := 0
		for file := range files {
			if !without[file] {
				total += sizeOf(t, file)
			}
		}
		return total, files
	}
	const english, german = "src/texts/en.ts", "src/texts/de.ts"
	shell, ofShell := size(nil, "index.html")
	shell += sizeOf(t, "") + sizeOf(t, "icon.svg")
	pages, language := 0, 0
	for _, texts := range []string{english, german} {
		n, _ := size(ofShell, texts)
		language = max(language, n)
		t.Logf("%6d bytes: the texts %s", n, texts)
	}
	t.Logf("%6d bytes: the console without texts and page", shell)
	for source, c := range chunks {
		if !c.IsDynamicEntry || !strings.HasPrefix(source, "src/pages/") {
			continue
		}
		pages++
		page, files := size(ofShell, source)
		first := shell + language + page
		t.Logf("%6d bytes: %s; %d where it is the first page", page, source, first)
		if page > furtherPage {
			t.Errorf("%s takes %d bytes, want at most %d", source, page, furtherPage)
		}
		if source == "src/pages/Attention.svelte" && first > firstLoad {
			t.Errorf("%d bytes load until the first page is shown, want at most %d", first, firstLoad)
		}
		for _, texts := range []string{english, german} {
			if ofShell[chunks[texts].File] || files[chunks[texts].File] {
				t.Errorf("%s loads %s in every language", source, texts)
			}
		}
	}
	if pages < 11 || shell < 10_000 {
		t.Errorf("%d pages, and %d bytes without one, want plausible numbers", pages, shell)
	}
}

// sizeOf returns the bytes of a file as the service sends it.
func sizeOf(t *testing.T, path string) int {
	w := get(t, "/console/"+path, "Accept-Encoding", "gzip")
	assert.Equal(t, w.Code, 200, "%s: status", path)
	return w.Body.Len()
}

func TestConsole_SizeIsLimited(t *testing.T) {
	total := 0
	require.NoError(t, fs.WalkDir(os.DirFS("dist"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasPrefix(name, ".vite/") {
			total += sizeOf(t, strings.TrimSuffix(name, "index.html"))
		}
		return err
	}))
	if total > everything || total <= firstLoad {
		t.Errorf("%d bytes in total, want at most %d, and a plausible number", total, everything)
	}
	if w := get(t, "/console/.vite/manifest.json"); w.Code != http.StatusNotFound {
		t.Errorf("the list of what was built is served with status %d", w.Code)
	}
}

// Of import('x').then(a, b) Vite moves the handlers into what loads after the style sheets: where
// one of these cannot be loaded, none is called. A function that imports does not have that.
func TestSources_HandleStyleSheetsThatDoNotLoad(t *testing.T) {
	chained := regexp.MustCompile(`import\('[^']*'\)\s*\.then\(`)
	seen := 0
	require.NoError(t, fs.WalkDir(os.DirFS("src"), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".svelte") && !strings.HasSuffix(name, ".ts") {
			return err
		}
		text, err := os.ReadFile("src/" + name)
		seen++
		if at := chained.FindIndex(text); at != nil {
			t.Errorf("src/%s: %s", name, text[at[0]:at[1]])
		}
		return err
	}))
	if seen < 50 {
		t.Errorf("only %d sources were read", seen)
	}
}

func TestMapStyle_IsInThePageAndItsOriginInThePolicy(t *testing.T) {
	const style = "https://tiles.example.com:8443/styles/day.json?key=a&b=\"c\""
	h, err := console.New("/console/", style)
	require.NoError(t, err)
	page := httptest.NewRecorder()
	h.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/console/", nil))
	if !strings.Contains(
		page.Body.String(),
		`<meta name="map-style" content="https://tiles.example.com:8443/styles/day.json?key=a&amp;b=&#34;c&#34;"`,
	) {
		t.Errorf("the page does not have the style:\n%s", page.Body)
	}
	policy := page.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "connect-src 'self' https://tiles.example.com:8443;") || strings.Count(policy, "tiles.example.com") != 1 {
		t.Errorf("the policy is %q, want connections to the style's origin alone", policy)
	}
	if page.Header().Get("ETag") == get(t, "/console/").Header().Get("ETag") {
		t.Error("a page with another style has the same entity tag")
	}
	for _, style := range []string{
		"style.json", "/style.json", "ftp://h/s", "https:///s", "https://u:p@h/s", "https://h;script-src/s", "javascript:alert(1)",
		"https://a b/",
	} {
		if _, err := console.New("/console/", style); err == nil {
			t.Errorf("the style %q was accepted", style)
		}
	}
}
