/** Shared by the sandbox's tests: a running sandbox, short requests, images and a file server. */
import { createServer } from "node:http";
import sharp from "sharp";
import { expect, onTestFinished } from "vitest";
import { silent } from "../../lab/support/log.ts";
import type { ErrorBody } from "../../src/sandbox/errors.ts";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../src/sandbox/server.ts";
import { listenUntilTestEnds } from "../support/listen.ts";

export const JSON_HEADERS = { authorization: "Bearer sk-sandbox-all", "content-type": "application/json" };

/** A sandbox that answers as fast as the caller reads, and ends with the test. */
export async function start(options: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({
    host: "127.0.0.1",
    port: 0,
    log: silent,
    tokensPerSecond: Number.POSITIVE_INFINITY,
    ...options,
  });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return fetch(url, { method: "POST", headers: { ...JSON_HEADERS, ...headers }, body: text });
}

export function ask(
  sandbox: Sandbox,
  content: unknown,
  extra: Record<string, unknown> = {},
  headers = {},
): Promise<Response> {
  const messages = [{ role: "user", content }];
  return post(`${sandbox.url}/v1/chat/completions`, { model: "sandbox-chat", messages, ...extra }, headers);
}

interface Completion {
  choices: [
    {
      message: { content: string; tool_calls?: { id: string; function: { name: string; arguments: string } }[] };
      finish_reason: string;
    },
  ];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

export async function completionOf(response: Promise<Response>): Promise<Completion> {
  return (await (await response).json()) as Completion;
}

export async function contentOf(response: Promise<Response>): Promise<string> {
  return (await completionOf(response)).choices[0].message.content;
}

export async function refusalOf(response: Promise<Response>): Promise<{ status: number } & ErrorBody["error"]> {
  const answer = await response;
  const { error } = (await answer.json()) as ErrorBody;
  return { status: answer.status, ...error };
}

export interface Chunk {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: {
    index: number;
    delta: {
      role?: string;
      content?: string;
      tool_calls?: { index: number; id?: string; function: { name?: string; arguments: string } }[];
    };
    finish_reason: string | null;
  }[];
  usage?: Completion["usage"] | null;
}

/** The parsed `data:` lines of a stream, without `[DONE]`. */
export function chunksOf(text: string): Chunk[] {
  const lines = text.split("\n").filter((line) => line.startsWith("data: ") && line !== "data: [DONE]");
  return lines.map((line) => JSON.parse(line.slice("data: ".length)) as Chunk);
}

export function textOf(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
}

export async function picture(
  color: string,
  widthPx = 8,
  heightPx = 8,
  format: "png" | "jpeg" = "png",
): Promise<Buffer> {
  const image = sharp({ create: { width: widthPx, height: heightPx, channels: 3, background: color } });
  return await image.toFormat(format).toBuffer();
}

export function dataUrl(bytes: Buffer, mimeType = "image/png"): string {
  return `data:${mimeType};base64,${bytes.toString("base64")}`;
}

/** Serves files on loopback until the test ends. Resolves to its origin. */
export async function serveFiles(files: Record<string, Buffer>): Promise<string> {
  const server = createServer((request, response) => {
    const file = files[request.url ?? ""];
    if (request.url === "/redirect") response.writeHead(302, { location: "/a.png" }).end();
    else if (file === undefined) response.writeHead(404).end();
    else response.end(file);
  });
  return listenUntilTestEnds(server);
}

export interface Part {
  text?: string;
  inlineData?: { mimeType: string; data: string };
  inline_data?: { mime_type: string; data: string };
}

export const WORDS = { text: "a red house" };

export function draw(
  sandbox: Sandbox,
  parts: unknown[] = [WORDS],
  generationConfig?: unknown,
  model = "sandbox-image",
): Promise<Response> {
  return post(`${sandbox.url}/v1beta/models/${model}:generateContent`, { contents: [{ parts }], generationConfig });
}

export async function partsOf(response: Promise<Response>): Promise<Part[]> {
  const answer = await response;
  expect(answer.status).toBe(200);
  const body = (await answer.json()) as { candidates: [{ content: { parts: Part[] } }] };
  return body.candidates[0].content.parts;
}

export async function pngOf(response: Promise<Response>): Promise<Buffer> {
  const part = (await partsOf(response)).find(({ inlineData }) => inlineData !== undefined);
  return Buffer.from(part?.inlineData?.data ?? "", "base64");
}

export const file = (mimeType: string, fileUri: string) => ({ fileData: { mimeType, fileUri } });
export const inline = (bytes: Buffer, mimeType = "image/png") => ({
  inlineData: { mimeType, data: bytes.toString("base64") },
});
