// Package maptest makes a small file of streets for tests: a PMTiles archive with a vector tile of
// the Protomaps basemap.
package maptest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
)

// Tile is one vector tile.
type Tile struct {
	Z, X, Y uint32
	Layers  []Layer
}

// Munich returns an archive with one tile of zoom level 10 around Munich's main station: a lake in
// the west, a park in the east, a street through both, and the names of street and city. The map
// draws it larger where people look closer.
func Munich() []byte {
	tile := Tile{Z: 10, X: 544, Y: 355}
	station := Point{3595, 1476}
	box := func(west, north, east, south int32) []Point {
		return []Point{{west, north}, {east, north}, {east, south}, {west, south}}
	}
	kind := func(kind, name string) map[string]string { return map[string]string{"kind": kind, "name": name} }
	tile.Layers = []Layer{
		{"earth", []Feature{{Polygon, box(0, 0, extent, extent), kind("earth", "")}}},
		{"landuse", []Feature{{Polygon, box(station.X+40, 0, extent, extent), kind("park", "")}}},
		{"water", []Feature{{Polygon, box(0, 0, station.X-40, extent), kind("lake", "")}}},
		{"roads", []Feature{{Line, []Point{{0, station.Y}, {extent, station.Y}}, kind("major_road", "Arnulfstraße")}}},
		{"places", []Feature{{Dot, []Point{station}, kind("locality", "München")}}},
	}
	return Archive(tile)
}

// Archive returns a PMTiles archive of a tile
// (https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md).
func Archive(tile Tile) []byte {
	content := gzipped(tile.encode())
	var directory []byte
	// The number of entries, then their ids, runs, lengths, and offsets plus 1.
	for _, n := range []uint64{1, tile.id(), 1, uint64(len(content)), 1} {
		directory = binary.AppendUvarint(directory, n)
	}
	header := make([]byte, 127)
	copy(header, "PMTiles\x03")
	// nil: there are no further directories.
	sections := [][]byte{gzipped(directory), gzipped(tile.describe()), nil, content}
	at := uint64(len(header))
	for i, section := range sections {
		binary.LittleEndian.PutUint64(header[8+16*i:], at)
		binary.LittleEndian.PutUint64(header[16+16*i:], uint64(len(section)))
		at += uint64(len(section))
	}
	for i := range 3 { // addressed tiles, entries, contents
		binary.LittleEndian.PutUint64(header[72+8*i:], 1)
	}
	zoom := byte(tile.Z)
	// Clustered; directories and tiles by gzip; vector tiles.
	copy(header[96:], []byte{1, 2, 2, 1, zoom, zoom})
	west, north := corner(tile.Z, tile.X, tile.Y)
	east, south := corner(tile.Z, tile.X+1, tile.Y+1)
	header[118] = zoom
	for at, degrees := range map[int]float64{102: west, 106: south, 110: east, 114: north, 119: (west + east) / 2, 123: (south + north) / 2} {
		binary.LittleEndian.PutUint32(header[at:], uint32(int32(math.Round(degrees*1e7))))
	}
	return slices.Concat(append([][]byte{header}, sections...)...)
}

// describe returns the archive's metadata.
func (t Tile) describe() []byte {
	type layer struct {
		ID     string            `json:"id"`
		Fields map[string]string `json:"fields"`
	}
	var layers []layer
	for _, l := range t.Layers {
		fields := map[string]string{}
		for _, f := range l.Features {
			for name := range f.Properties {
				fields[name] = "String"
			}
		}
		layers = append(layers, layer{l.Name, fields})
	}
	text, err := json.Marshal(map[string]any{"vector_layers": layers, "attribution": `<a href="https://www.openstreetmap.org/copyright">&copy; OpenStreetMap</a>`})
	if err != nil {
		panic(err) // of strings alone
	}
	return text
}

// corner is the place at the upper left of a tile (Web Mercator).
func corner(z, x, y uint32) (longitude, latitude float64) {
	n := math.Exp2(float64(z))
	return float64(x)/n*360 - 180, math.Atan(math.Sinh(math.Pi*(1-2*float64(y)/n))) * 180 / math.Pi
}

// id is the tile's place on the Hilbert curve of its zoom level, after all tiles of lower ones.
func (t Tile) id() uint64 {
	id := (uint64(1)<<(2*t.Z) - 1) / 3
	x, y := uint64(t.X), uint64(t.Y)
	for s := uint64(1) << t.Z >> 1; s > 0; s >>= 1 {
		right, down := min(x&s, 1), min(y&s, 1)
		id += s * s * (3*right ^ down)
		x, y = x&(s-1), y&(s-1)
		if down == 0 {
			if right == 1 {
				x, y = s-1-x, s-1-y
			}
			x, y = y, x
		}
	}
	return id
}

func gzipped(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(content) // into memory
	_ = w.Close()
	return b.Bytes()
}
