package httpapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"

	"motorpool/httpapi"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

func TestRoutes_AreThoseOfTheContract(t *testing.T) {
	served := map[string]bool{}
	for _, route := range newAPI(t).handler.(*echo.Echo).Routes() {
		if (strings.HasPrefix(route.Path, "/api") || strings.HasPrefix(route.Path, "/webhooks")) && route.Method != http.MethodHead {
			// HEAD is served like GET.
			served[route.Method+" "+regexp.MustCompile(`:(\w+)`).ReplaceAllString(route.Path, "{$1}")] = true
		}
	}
	promised := map[string]bool{}
	for path, item := range document().Paths.Map() {
		for method := range item.Operations() {
			promised[method+" "+path] = true
		}
	}
	for route := range served {
		if !promised[route] {
			t.Errorf("served, not in the contract: %s", route)
		}
	}
	for route := range promised {
		if !served[route] {
			t.Errorf("in the contract, not served: %s", route)
		}
	}
	same(t, len(promised), len(telematics.ControlActions)+101, "routes in the contract")
}

// The requests that the pages name are in the contract; "…" stands for the beginning of a path.
func TestDocuments_NameRoutesOfTheContract(t *testing.T) {
	wildcard := regexp.MustCompile(`/(?:\{\w+\}|\d+)`)
	var routes []string
	for path, item := range document().Paths.Map() {
		for method := range item.Operations() {
			routes = append(routes, method+" "+wildcard.ReplaceAllString(path, "/*"))
		}
	}
	request, named := regexp.MustCompile("`(GET|POST|PUT|PATCH|DELETE) (/api/v1/|/admin/|/client/|…/)([^\\s`?]+)"), 0
	for _, page := range must(filepath.Glob("../docs/*.md")) {
		for _, said := range request.FindAllStringSubmatch(string(must(os.ReadFile(page))), -1) {
			path := strings.TrimSuffix(wildcard.ReplaceAllString(strings.TrimPrefix(said[2], "…")+said[3], "/*"), "/")
			named++
			if !slices.ContainsFunc(routes, func(route string) bool {
				return strings.HasPrefix(route, said[1]) && (strings.HasSuffix(route, path) || strings.Contains(route, path+"/"))
			}) {
				t.Errorf("%s names %s %s%s, which is not in the contract", page, said[1], said[2], said[3])
			}
		}
	}
	if named < 45 {
		t.Errorf("the pages name %d requests, want at least 45", named)
	}
}

func TestContract_IsValidOpenAPI(t *testing.T) {
	document := must(openapi3.NewLoader().LoadFromFile("openapi.yaml"))
	assert.NoError(t, document.Validate(t.Context(), openapi3.EnableExamplesValidation()))
	same(t, document.OpenAPI, "3.0.3", "OpenAPI version")
	for name, schema := range document.Components.Schemas {
		for member, property := range schema.Value.Properties {
			if property.Ref == "" && property.Value.Description == "" && !strings.HasSuffix(name, "Envelope") &&
				len(property.Value.Properties) == 0 {
				t.Errorf("%s.%s has no description", name, member)
			}
		}
	}
}

func TestContract_IsServed(t *testing.T) {
	a := newAPI(t)
	text := must(os.ReadFile("openapi.yaml"))
	served := a.get("/openapi.yaml", anonymous).answers(200).heads("Content-Type", "application/yaml")
	same(t, served.text, string(text), "the contract")
	r := a.get("/openapi.json", anonymous)
	r.heads("Content-Type", "application/json")
	r.answers(200)
	if _, err := openapi3.NewLoader().LoadFromData([]byte(r.text)); err != nil {
		t.Error(err)
	}
}

func TestDocs_NeedNoOtherServer(t *testing.T) {
	a := newAPI(t)
	page := a.get("/docs", anonymous)
	if page.status != 200 || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", page.status, page.header)
	}
	for _, link := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page.text, -1) {
		if r := a.get(link[1], anonymous); !strings.HasPrefix(link[1], "/docs/") || r.status != 200 || len(r.text) == 0 {
			t.Errorf("%s: status %d, want a file below /docs/", link[1], r.status)
		}
	}
	policy := page.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Count(policy, "'sha256-") != 2 ||
		strings.Contains(policy, "script-src 'self' 'unsafe") {
		t.Errorf("policy %s", policy)
	}
}

func TestHEAD_IsServedLikeGET(t *testing.T) {
	a := newAPI(t)
	for _, target := range []string{"/api/v1/admin/vehicles", refresh42, "/openapi.json", "/docs"} {
		a.do(http.MethodHead, target).answers(200)
	}
	same(t, len(a.history.all()), 2, "a read by HEAD was not recorded")
	same(t, a.controller.count(), 0, "refreshes by HEAD")
}

func TestDocs_KeepAuthorizationFilterAndPresetNothing(t *testing.T) {
	a := newAPI(t)
	page := a.get("/docs", anonymous).text
	for _, setting := range []string{"persistAuthorization: true", "filter: true"} {
		if !strings.Contains(strings.ReplaceAll(page, `"`, ""), setting) {
			t.Errorf("the page does not set %s", setting)
		}
	}
	if strings.Contains(page, "docsRequestInterceptor") {
		t.Error("the page has an unexpected interceptor")
	}
	for path, item := range document().Paths.Map() {
		for method, operation := range item.Operations() {
			for _, p := range operation.Parameters {
				if p.Value.Name == "Prefer" && p.Value.Example != nil {
					t.Errorf("%s %s has an example of Prefer, which the page would preset", method, path)
				}
			}
		}
	}
}

func TestDocs_RootLeadsToThem(t *testing.T) {
	r := newAPI(t).get("/", anonymous)
	r.heads("Location", "docs")
	r.answers(302)
}

func TestDocs_CanBeTurnedOff(t *testing.T) {
	a := newAPI(t, func(c *httpapi.Config) { c.HideDocs = true })
	for _, path := range []string{"/", "/docs", "/docs/swagger-ui.css"} {
		a.get(path, anonymous).answers(404)
	}
	if r := a.get("/", anonymous); !strings.Contains(r.text, "/openapi.yaml") {
		t.Errorf("the root does not say where to go: %s", r.text)
	}
	a.get("/openapi.yaml", anonymous).answers(200)
}

func TestDocs_ScriptRunsUnderThePolicy(t *testing.T) {
	a := newAPI(t, func(c *httpapi.Config) {
		c.DocsScript = "window.docsRequestInterceptor = (r) => { r.n = 1 < 2 && `${r.url}`; return r; };"
	})
	page := a.get("/docs", anonymous)
	page.shows("<script>window.docsRequestInterceptor = (r) => { r.n = 1 < 2 && `${r.url}`; return r; };</script>")
	same(t, strings.Count(page.header.Get("Content-Security-Policy"), "'sha256-"), 3, "hashes of the policy")
}
