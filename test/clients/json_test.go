package clients

import (
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// json calls the typed methods for JSON.
func (c *goRedis) json() {
	number := func(n int64) *int64 { return &n }
	is(c, c.JSONSet(c.ctx, "tea", "$", `{"item":"thé","price":2,"tags":["hot"],"stock":{"full":true,"n":null}}`), "OK")
	is(c, c.JSONSet(c.ctx, "tea", "$.cups", map[string]int{"big": 3}), "OK")
	is(c, c.JSONSetMode(c.ctx, "tea", "$.cups", "[]", "XX"), "OK")
	c.isNil(c.JSONSetMode(c.ctx, "tea", "$.cups", "[]", "NX"))
	is(c, c.JSONGet(c.ctx, "tea"), `{"item":"thé","price":2,"tags":["hot"],"stock":{"full":true,"n":null},"cups":[]}`)
	is(c, c.JSONGet(c.ctx, "tea", "$.price"), "[2]")
	is(c, c.JSONGet(c.ctx, "tea", "$.price", ".item"), `{"$.price":[2],".item":["thé"]}`)
	is(c, c.JSONGetWithArgs(c.ctx, "tea", &redis.JSONGetArgs{Indent: "-", Newline: "\n", Space: " "}, "$.stock"), "[\n-{\n--\"full\": true,\n--\"n\": null\n-}\n]")
	c.isNil(c.JSONGet(c.ctx, "nobody"))
	is(c, c.JSONMGet(c.ctx, "$.price", "tea", "nobody"), []any{"[2]", nil})
	is(c, c.JSONNumIncrBy(c.ctx, "tea", "$..price", 0.5), "[2.5]")
	is(c, c.JSONStrAppend(c.ctx, "tea", "$.*", `" vert"`), []*int64{number(9), nil, nil, nil, nil})
	is(c, c.JSONStrLen(c.ctx, "tea", "$.item"), []*int64{number(9)})
	is(c, c.JSONArrAppend(c.ctx, "tea", "$.tags", `"sweet"`, `{"of":"Assam"}`), []int64{3})
	is(c, c.JSONArrIndex(c.ctx, "tea", "$.tags", `"sweet"`), []int64{1})
	stop := 1
	is(c, c.JSONArrIndexWithArgs(c.ctx, "tea", "$.tags", &redis.JSONArrIndexArgs{Stop: &stop}, `"sweet"`), []int64{-1})
	is(c, c.JSONArrInsert(c.ctx, "tea", "$.tags", 0, `"new"`, "1"), []int64{5})
	is(c, c.JSONArrLen(c.ctx, "tea", "$.tags"), []int64{5})
	is(c, c.JSONArrPop(c.ctx, "tea", "$.tags", -1), []string{`{"of":"Assam"}`})
	is(c, c.JSONArrTrimWithArgs(c.ctx, "tea", "$.tags", &redis.JSONArrTrimArgs{Start: 2, Stop: &stop}), []int64{0})
	is(c, c.JSONObjKeys(c.ctx, "tea", "$.stock"), []any{[]any{"full", "n"}})
	is(c, c.JSONObjLen(c.ctx, "tea", "$.*"), []*int64{nil, nil, nil, number(2), nil})
	is(c, c.JSONToggle(c.ctx, "tea", "$.stock.*"), []*int64{number(0), nil})
	is(c, c.JSONMerge(c.ctx, "tea", "$.stock", `{"n":5,"full":null}`), "OK")
	is(c, c.JSONMSet(c.ctx, "tea", "$.price", "1", "cup", "$", "[1]"), "OK")
	is(c, c.JSONMSetArgs(c.ctx, []redis.JSONSetArgs{{Key: "cup", Path: "$[0]", Value: "2"}}), "OK")
	is(c, c.JSONClear(c.ctx, "cup", "$"), 1)
	is(c, c.JSONGet(c.ctx, "tea", "."), `{"item":"thé vert","price":1,"tags":[],"stock":{"n":5},"cups":[]}`)
	is(c, c.JSONDel(c.ctx, "tea", "$..n"), 1)
	is(c, c.JSONForget(c.ctx, "cup", "$"), 1)
	is(c, c.Type(c.ctx, "tea"), "ReJSON-RL")
	types, err := c.JSONType(c.ctx, "tea", "$.tags").Result()
	want := []any{"array"}
	if c.protocol == 3 {
		want = []any{[]any{"array"}}
	}
	if err != nil || !slices.EqualFunc(types, want, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		c.t.Errorf("JSON.TYPE: %v, %v", types, err)
	}
	c.fails(c.JSONGet(c.ctx, "tea", ".none"), "ERR Path '.none' does not exist")
	c.fails(c.JSONNumIncrBy(c.ctx, "nobody", "$.a", 1), "ERR could not perform this operation on a key that doesn't exist")
	is(c, c.Set(c.ctx, "plain", "v", 0), "OK")
	c.fails(c.JSONSet(c.ctx, "plain", "$", "1"), "WRONGTYPE Existing key has wrong Redis type")

	cmds, err := c.TxPipelined(c.ctx, func(p redis.Pipeliner) error {
		p.JSONSet(c.ctx, "tea", "$.price", "3")
		p.JSONNumIncrBy(c.ctx, "tea", "$.price", 1)
		p.JSONGet(c.ctx, "tea", "$.price")
		return nil
	})
	if err != nil || cmds[2].(*redis.JSONCmd).Val() != "[4]" {
		c.t.Errorf("transaction: %v, %v", cmds, err)
	}
}
