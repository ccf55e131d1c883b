import { expect, test } from "vitest";
import { attachmentOf, type PictureJob, readPictureJob } from "../../src/imagine/picture-job.ts";
import { pictureJob } from "../support/picture-job.ts";

const attachment = { platform: "test", id: "x", name: "a.png", sizeBytes: 3 };
const job: PictureJob = pictureJob({
  after: "m1",
  change: "vary",
  ratio: "16:9",
  size: "2K",
  statusId: "test:status",
  reply: { platform: "test", channelId: "general", threadId: "t", visibleTo: "ada", extra: { token: "x" } },
  author: { id: "ada", name: "Ada", isModerator: true },
  references: [attachment],
  parts: [
    { state: "pending" },
    { state: "done", messageId: "test:1", attachment, text: "Here.", tokens: 5 },
    { state: "failed", reason: "No.", canRetry: true },
    { state: "deleted" },
  ],
});

test("a job is read back as it was stored, whole", () => {
  expect(readPictureJob(JSON.parse(JSON.stringify(job)))).toEqual(job);
});

test.each([undefined, null, 1, { ...job, v: 2 }, { ...job, parts: [{ state: "odd" }] }, { ...job, prompt: undefined }])(
  "what is no job is absent",
  (value) => expect(readPictureJob(value)).toBeUndefined(),
);

test("only a picture that is there can be looked at again", () => {
  expect([0, 1, 2, 3, 4, 5].map((number) => attachmentOf(job, number))).toEqual(
    [0, 1, 2, 3, 4, 5].map((number) => (number === 2 ? attachment : undefined)),
  );
});
