package console_test

import (
	"net/http"
	"net/http/httptest"
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
