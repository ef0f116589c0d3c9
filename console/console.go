// Package console is the web console: pages that browsers load from the service. They are built
// from src by Vite, and the built files are part of the program, so that it needs no other server
// and no internet.
package console

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"motorpool/httpapi/accept"
)

// dist contains the output of `npm run build`, without Vite's list of it in .vite.
//
//go:embed dist all:dist/assets
var dist embed.FS

// policyWith allows the pages to load the console's files and to call the API of their origin only,
// and the map to read from the origin of its style.
func policyWith(styleOrigin string) string {
	if styleOrigin != "" {
		styleOrigin = " " + styleOrigin
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
		"connect-src 'self'" + styleOrigin + "; worker-src 'self'; manifest-src 'self'; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}

// styleMark is where the page has the address of the map's style.
const styleMark = `<meta name="map-style" content="`

// OriginOf returns the origin of a map style's address, or an error: the address must be absolute,
// with https, or http.
func OriginOf(style string) (string, error) {
	u, err := url.Parse(style)
	switch {
	case err != nil:
		return "", errors.New("want a URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.ContainsAny(u.Host, "; ,'\""):
		return "", errors.New("want https://host/style.json, or http://")
	}
	return u.Scheme + "://" + u.Host, nil
}

// asset is one file.
type asset struct {
	content []byte
	kind    string
	etag    string
	hashed  bool          // its name changes with its content
	gzipped func() []byte // compressed when it is first requested so; nil: smaller as it is
}

// compressed returns content for gzip, once.
func compressed(content []byte) func() []byte {
	return sync.OnceValue(func() []byte {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // fails for unknown levels alone
		_, _ = w.Write(content)                               // into memory
		_ = w.Close()
		return b.Bytes()
	})
}

// Handler serves the console below a path that ends in a slash. It is safe for concurrent use.
type Handler struct {
	prefix string
	policy string
	assets map[string]asset
}

// New returns the console, to be served at a path such as /console/. mapStyle is the address of a
// MapLibre style, from whose origin browsers may load its parts; empty: the map has a plain ground.
// It fails where mapStyle is no address of a style.
func New(prefix, mapStyle string) (*Handler, error) {
	var origin string
	if mapStyle != "" {
		var err error
		if origin, err = OriginOf(mapStyle); err != nil {
			return nil, err
		}
	}
	h := &Handler{prefix: prefix, policy: policyWith(origin), assets: map[string]asset{}}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		if name == "dist/index.html" {
			content = bytes.Replace(content, []byte(styleMark), []byte(styleMark+html.EscapeString(mapStyle)), 1)
		}
		sum := sha256.Sum256(content)
		served := strings.TrimPrefix(name, "dist/")
		file := asset{
			content: content, kind: mime.TypeByExtension(path.Ext(name)), hashed: strings.HasPrefix(served, "assets/"),
			etag: base64.RawURLEncoding.EncodeToString(sum[:12]),
		}
		if ext := path.Ext(name); ext != ".woff2" && ext != ".png" { // those are compressed already
			file.gzipped = compressed(content)
		}
		h.assets[served] = file
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read console: %w", err)
	}
	if _, ok := h.assets["index.html"]; !ok {
		return nil, fmt.Errorf("read console: it is not built; run npm ci && npm run build in console/")
	}
	return h, nil
}

// Has reports whether there is a page or file at a path.
func (h *Handler) Has(urlPath string) bool {
	_, ok := h.find(urlPath)
	return ok
}

func (h *Handler) find(urlPath string) (asset, bool) {
	name, below := strings.CutPrefix(urlPath, h.prefix)
	if !below {
		return asset{}, false
	}
	name = cmp.Or(name, "index.html")
	found, ok := h.assets[name]
	return found, ok
}

// ServeHTTP answers with a page or file.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, ok := h.find(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", found.kind)
	content, etag := found.content, found.etag
	if found.gzipped != nil {
		header.Set("Vary", "Accept-Encoding")
		if accept.Gzip(r.Header) && r.Header.Get("Range") == "" {
			header.Set("Content-Encoding", "gzip")
			content, etag = found.gzipped(), etag+"-gzip"
		}
	}
	header.Set("ETag", `"`+etag+`"`)
	header.Set("Content-Security-Policy", h.policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	if found.hashed {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		header.Set("Cache-Control", "no-cache") // asks each time whether it has changed
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
