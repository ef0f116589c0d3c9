package httpapi

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

	"github.com/labstack/echo/v4"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5/static"
	"github.com/swaggest/swgui/v5emb"
)

const docsPath = "/docs"

// docsHandler serves the contract for reading and trying, from the binary alone. See Config.DocsScript.
func docsHandler(script string) echo.HandlerFunc {
	config := swgui.Config{
		Title:       "Motorpool",
		SwaggerJSON: "/openapi.yaml", // which, unlike the JSON, has the order of the author
		BasePath:    docsPath,
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
	docs := v5emb.NewHandlerWithConfig(config)
	policy := docsPolicy(docs)
	return func(c echo.Context) error {
		asset, isAsset := strings.CutPrefix(c.Request().URL.Path, docsPath+"/")
		if isAsset && !embedded(asset) {
			return echo.ErrNotFound
		}
		c.Response().Header().Set(echo.HeaderContentSecurityPolicy, policy)
		docs.ServeHTTP(c.Response(), c.Request())
		return nil
	}
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

// docsPolicy returns a Content-Security-Policy under which the page runs its own scripts and talks
// to this server only. Its inline scripts are named by their hash.
func docsPolicy(docs http.Handler) string {
	page := &rendered{header: http.Header{}}
	docs.ServeHTTP(page, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: docsPath}})
	scripts := "'self'"
	for _, match := range inlineScript.FindAllSubmatch(page.Bytes(), -1) {
		sum := sha256.Sum256(match[1])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'; " +
		"img-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src " + scripts
}

// rendered is a page that is written for reading only.
type rendered struct {
	bytes.Buffer
	header http.Header
}

func (p *rendered) Header() http.Header { return p.header }
func (p *rendered) WriteHeader(int)     {}
