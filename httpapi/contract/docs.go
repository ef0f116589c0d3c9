package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5/static"
	"github.com/swaggest/swgui/v5emb"
)

// Docs is a page to read and try the contract, with all files embedded in the binary.
type Docs struct {
	path   string
	page   http.Handler
	policy string
}

// NewDocs returns the page for a path; the document must be at /openapi.yaml. A script, if not
// empty, runs first, and must define docsRequestInterceptor(request), which gets every request of
// the page.
func NewDocs(path, script string) *Docs {
	config := swgui.Config{
		Title:       "Motorpool",
		SwaggerJSON: "/openapi.yaml", // which, unlike the JSON, has the order of the author
		BasePath:    path,
		SettingsUI: map[string]string{
			"defaultModelsExpandDepth": "0", // schemas are listed, folded
			"persistAuthorization":     "true",
			"filter":                   "true",
		},
	}
	if script != "" {
		config.AppendHead = template.HTML("<script>" + script + "</script>") //nolint:gosec // the program's own
		config.SettingsUI["requestInterceptor"] = "window.docsRequestInterceptor"
	}
	page := v5emb.NewHandlerWithConfig(config)
	return &Docs{path: path, page: page, policy: docsPolicy(page, path)}
}

// Has reports whether a path is that of the page or of one of its files.
func (d *Docs) Has(path string) bool {
	file, isFile := strings.CutPrefix(path, d.path+"/")
	return !isFile || embedded(file)
}

func (d *Docs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", d.policy)
	d.page.ServeHTTP(w, r)
}

func embedded(asset string) bool {
	for _, name := range []string{asset, asset + ".gz"} {
		if _, err := fs.Stat(static.FS, name); err == nil && asset != "." {
			return true
		}
	}
	return false
}

var inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// docsPolicy returns a Content-Security-Policy that allows only the page's scripts, and requests
// only to this server. Inline scripts are allowed by their hash.
func docsPolicy(docs http.Handler, path string) string {
	page := &rendered{header: http.Header{}}
	docs.ServeHTTP(page, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
	scripts := "'self'"
	for _, match := range inlineScript.FindAllSubmatch(page.Bytes(), -1) {
		sum := sha256.Sum256(match[1])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'; " +
		"img-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src " + scripts
}

// rendered is a page in memory.
type rendered struct {
	bytes.Buffer
	header http.Header
}

func (p *rendered) Header() http.Header { return p.header }
func (p *rendered) WriteHeader(int)     {}
