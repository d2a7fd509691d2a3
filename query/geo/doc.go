// Package geo reads points and polygons of GeoJSON, and measures on them.
package geo
