package console_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"motorpool/console"
)

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	h, err := console.New("/console/")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestThePageLoadsOnlyFilesOfTheProgram(t *testing.T) {
	page := get(t, "/console/")
	if page.Code != 200 || page.Header().Get("Content-Type") != "text/html; charset=utf-8" || page.Header().Get("Cache-Control") != "no-cache" {
		t.Fatalf("%d %v", page.Code, page.Header())
	}
	links := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(links) < 3 {
		t.Fatalf("links %v", links)
	}
	for _, link := range links {
		relative, ok := strings.CutPrefix(link[1], "./")
		if !ok {
			t.Errorf("%s is not relative: it does not work below a path prefix", link[1])
			continue
		}
		file := get(t, "/console/"+relative)
		if file.Code != 200 || file.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", relative, file.Code, file.Header())
		}
		if strings.HasPrefix(relative, "assets/") != (file.Header().Get("Cache-Control") == "public, max-age=31536000, immutable") {
			t.Errorf("%s is cached as %q", relative, file.Header().Get("Cache-Control"))
		}
	}
	if strings.Contains(page.Body.String(), "<script>") || strings.Contains(page.Body.String(), "<style") || strings.Contains(page.Body.String(), "://") {
		t.Errorf("the page has something inline, or of another host:\n%s", page.Body)
	}
}

func TestThePolicyAllowsNothingInlineOrForeign(t *testing.T) {
	policy := get(t, "/console/").Header().Get("Content-Security-Policy")
	for _, word := range []string{"default-src 'none'", "frame-ancestors 'none'", "script-src 'self';", "connect-src 'self';"} {
		if !strings.Contains(policy, word) {
			t.Errorf("%q lacks %q", policy, word)
		}
	}
	for _, word := range []string{"unsafe", "*", "http"} {
		if strings.Contains(policy, word) {
			t.Errorf("%q has %q", policy, word)
		}
	}
}

func TestAFileThatHasNotChangedIsNotSentAgain(t *testing.T) {
	etag := get(t, "/console/").Header().Get("ETag")
	if again := get(t, "/console/", "If-None-Match", etag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("%d with %d bytes", again.Code, again.Body.Len())
	}
	for _, path := range []string{"/console/x", "/console/../console.go", "/other/", "/console/assets/"} {
		if w := get(t, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestFilesAreSentCompressed(t *testing.T) {
	plain := get(t, "/console/")
	packed := get(t, "/console/", "Accept-Encoding", "br;q=1, gzip;q=0.8")
	if packed.Header().Get("Content-Encoding") != "gzip" || packed.Header().Get("Vary") != "Accept-Encoding" || packed.Header().Get("ETag") == plain.Header().Get("ETag") {
		t.Fatalf("%v, and uncompressed %v", packed.Header(), plain.Header())
	}
	r, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(r); err != nil || !bytes.Equal(content, plain.Body.Bytes()) {
		t.Errorf("%q %v", content, err)
	}
	if w := get(t, "/console/", "Accept-Encoding", "*"); w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("Accept-Encoding *: %v", w.Header())
	}
	for _, header := range []string{"", "identity", "gzip;q=0", "gzip;q=0.0", "br"} {
		if w := get(t, "/console/", "Accept-Encoding", header); w.Header().Get("Content-Encoding") != "" {
			t.Errorf("Accept-Encoding %q: %v", header, w.Header())
		}
	}
}

// A slow connection must not wait for the map to see the fleet.
func TestTheConsoleIsSmall(t *testing.T) {
	const first, all = 120 << 10, 700 << 10
	size := func(path string) int {
		w := get(t, path, "Accept-Encoding", "gzip")
		if w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
		return w.Body.Len()
	}
	before := size("/console/")
	for _, link := range regexp.MustCompile(`(?:src|href)="\./([^"]*)"`).FindAllStringSubmatch(get(t, "/console/").Body.String(), -1) {
		before += size("/console/" + link[1])
	}
	total := 0
	if err := fs.WalkDir(os.DirFS("dist"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			total += size("/console/" + strings.TrimSuffix(name, "index.html"))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d KiB before the map, %d KiB in all", before>>10, total>>10)
	if before > first || before < 10<<10 {
		t.Errorf("%d bytes load before the map, more than %d or too few to be true", before, first)
	}
	if total > all || total <= before {
		t.Errorf("%d bytes in all, more than %d or too few to be true", total, all)
	}
}
