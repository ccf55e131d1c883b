import { describe, expect, test } from "vitest";
import { createLanes } from "../../../src/queue/embedded/lanes.ts";
import { ben, message } from "../../support/events.ts";

describe("lanes", () => {
  test("give a conversation one place in the line, however much waits in it", () => {
    const lanes = createLanes();
    for (const text of ["a1", "a2", "a3"]) lanes.add(message(text, { conversationId: "a" }));
    lanes.add(message("b1", { conversationId: "b" }));
    expect([lanes.next(), lanes.next(), lanes.next()].map((lane) => lane?.conversationId)).toEqual([
      "a",
      "b",
      undefined,
    ]);
  });

  test("put a conversation at the end of the line when a part of it is done", () => {
    const lanes = createLanes();
    const [first, second] = [message("a1", { conversationId: "a" }), message("a2", { conversationId: "a" })];
    lanes.add(first);
    lanes.add(second);
    lanes.add(message("b1", { conversationId: "b" }));
    const lane = lanes.next();
    if (lane === undefined) throw new Error("a lane is ready");
    lanes.finish(lane, [first]);
    expect(lanes.next()?.conversationId).toBe("b");
    expect(lanes.next()?.waiting).toEqual([second]);
  });

  test("do not offer a conversation that is being worked on", () => {
    const lanes = createLanes();
    lanes.add(message("a1"));
    lanes.next();
    lanes.add(message("a2"));
    expect(lanes.next()).toBeUndefined();
  });

  test("pass over one that may not begin, which keeps its place", () => {
    const lanes = createLanes();
    for (const id of ["a", "b", "c"]) lanes.add(message(id, { conversationId: id }));
    const isAllowed = { a: false };
    const next = () => lanes.next((ready) => ready.find(({ id }) => id !== "a" || isAllowed.a))?.conversationId;
    expect(next()).toBe("b");
    isAllowed.a = true;
    expect([next(), next(), next()]).toEqual(["a", "c", undefined]);
  });

  test("forget what is dropped, and skip a conversation that has nothing left", () => {
    const lanes = createLanes();
    lanes.add(message("mine", { conversationId: "a" }));
    lanes.add(message("theirs", { conversationId: "b", author: ben }));
    lanes.drop(({ author }) => author.id !== ben.id);
    expect(lanes.waiting()).toBe(1);
    expect(lanes.next()?.conversationId).toBe("b");
    expect(lanes.next()).toBeUndefined();
  });

  test("leave what is being worked on to its work", () => {
    const lanes = createLanes();
    const event = message("running");
    lanes.add(event);
    const lane = lanes.next();
    if (lane === undefined) throw new Error("a lane is ready");
    lane.taken = [event];
    lanes.add(message("waiting"));
    lanes.drop(() => true);
    expect(lane.waiting).toEqual([event]);
  });
});
