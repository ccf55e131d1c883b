import { describe, expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { createModelLists, findModel, nearModels } from "../../src/models/model-list.ts";

const open = new AbortController().signal;
const MINUTE_MS = 60_000;

/**
 * A list from a gateway that sends one response per request and repeats the last one forever, and a clock that tests
 * set.
 */
function listOver(...answers: Array<Promise<string[]> | string[] | Error>) {
  const clock = { nowMs: 0 };
  const calls: number[] = [];
  const listModels = async () => {
    const answer = answers[Math.min(calls.push(clock.nowMs), answers.length) - 1];
    if (answer instanceof Error) throw answer;
    return answer ?? [];
  };
  const models = { chatModel: "usual", imageModel: "painter" };
  const lists = createModelLists({ gateway: { listModels }, ...models, log: silent, now: () => clock.nowMs });
  return { list: lists.chat, images: lists.images, clock, calls };
}

describe("the list of models", () => {
  test("the service requests the list of models once in several minutes", async () => {
    const { list, clock, calls } = listOver(["one"], ["two"]);
    expect(await list(open)).toEqual(["usual", "one"]);
    clock.nowMs = 4 * MINUTE_MS;
    expect(await list(open)).toEqual(["usual", "one"]);
    clock.nowMs = 6 * MINUTE_MS;
    expect(await list(open)).toEqual(["usual", "two"]);
    expect(calls).toEqual([0, 6 * MINUTE_MS]);
  });

  test("concurrent callers share one request for the list of models, and one that aborts does not stop the others", async () => {
    const asked = Promise.withResolvers<string[]>();
    const { list, calls } = listOver(asked.promise);
    const impatient = new AbortController();
    const [gone, patient] = [list(impatient.signal), list(open)];
    impatient.abort(new Error("gone"));
    await expect(gone).rejects.toThrow("gone");
    asked.resolve(["one"]);
    expect(await patient).toEqual(["usual", "one"]);
    expect(calls).toHaveLength(1);
  });

  test("the service uses an old list of models if it cannot refresh the list, and requests a list that never arrived again", async () => {
    const { list, clock } = listOver(new Error("down"), ["one"], new Error("down"));
    await expect(list(open)).rejects.toThrow("down");
    expect(await list(open)).toEqual(["usual", "one"]);
    clock.nowMs = 6 * MINUTE_MS;
    expect(await list(open)).toEqual(["usual", "one"]);
  });

  test("the list of models contains each chat model once, and no model whose name says that it cannot chat", async () => {
    const other = ["gpt-image-1", "text-embedding-3", "dall-e-3", "whisper-1", "x/tts", "bge-reranker", "flash-image"];
    const chat = ["imaginary", "usual", "embedded-ai", "qwen-vl"];
    const { list } = listOver([...other, ...chat, "x".repeat(200)]);
    expect(await list(open)).toEqual(["usual", "imaginary", "embedded-ai", "qwen-vl"]);
  });
});

describe("the list of image models", () => {
  test("the list of image models starts with the configured one, and needs no extra request", async () => {
    const { list, images, calls } = listOver(["one", "flash-image", "imaginary", "dall-e-3", "video-image"]);
    expect(await images(open)).toEqual(["painter", "flash-image", "dall-e-3"]);
    expect(await list(open)).toEqual(["usual", "one", "imaginary"]);
    expect(calls).toHaveLength(1);
  });

  test("the list of image models is empty if none is configured", async () => {
    const listModels = async () => ["flash-image"];
    const models = { chatModel: "usual", imageModel: undefined };
    const { images } = createModelLists({ gateway: { listModels }, ...models, log: silent, now: () => 0 });
    expect(await images(open)).toEqual([]);
  });
});

describe("the name of a model", () => {
  test("the lookup finds a model in any case if only one matches", () => {
    expect(findModel("GPT-5", ["gpt-5", "gpt-5-mini"])).toBe("gpt-5");
    expect(findModel("a", ["A", "a"])).toBe("a");
    expect(findModel("aB", ["AB", "ab"])).toBeUndefined();
    expect(findModel("gpt", ["gpt-5"])).toBeUndefined();
  });

  test.each([
    ["gtp-5", ["gpt-5"]],
    ["mini", ["gpt-5-mini"]],
    ["gpt-5-mini-2026", ["gpt-5-mini", "gpt-5"]],
    ["llama", []],
    ["", []],
    ["x".repeat(101), []],
  ])("the lookup suggests the models that an unknown name probably means: %j", (name, meant) => {
    expect(nearModels(name, ["gpt-5", "gpt-4", "gpt-5-mini"]).toSorted()).toEqual(meant.toSorted());
  });
});
