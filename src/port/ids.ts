/**
 * What buttons know a picture by: its job and its number in it, from 1 on. Number 0 is the job as a whole. Short, and
 * without ":", because platforms put it into ids of their own; the "." tells it from the id of a turn.
 */
export interface PictureId {
  jobId: string;
  part: number;
}

export function toPictureId(jobId: string, part: number): string {
  return `${jobId}.${part}`;
}

/** Undefined for the id of a turn. */
export function readPictureId(id: string): PictureId | undefined {
  const [, jobId, part] = /^([\w-]+)\.(\d)$/.exec(id) ?? [];
  return jobId === undefined ? undefined : { jobId, part: Number(part) };
}
