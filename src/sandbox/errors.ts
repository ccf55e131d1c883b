export interface ErrorBody {
  error: { type: string; code: string; message: string; param: string | null };
}

export interface ApiErrorOptions {
  status: number;
  type: string;
  code: string;
  param?: string | null;
  headers?: Readonly<Record<string, string>>;
}

/** A refusal with its HTTP status and error object. The caller sees the message, which never quotes a key. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(message: string, options: ApiErrorOptions) {
    super(message);
    this.status = options.status;
    this.type = options.type;
    this.code = options.code;
    this.param = options.param ?? null;
    this.headers = options.headers ?? {};
  }
}

/** Makes a 400 for a field, or for the whole body if `param` is null. */
export function toInvalidRequest(message: string, code: string, param: string | null): ApiError {
  return new ApiError(message, { status: 400, type: "invalid_request_error", code, param });
}

/** Makes the 429 of the interface: the documented type, code and message, and no `param`. */
export function toRateLimited(model: string, headers: Readonly<Record<string, string>>): ApiError {
  return new ApiError(`rate limit exceeded for model ${model}`, {
    status: 429,
    type: "rate_limit_error",
    code: "rate_limit_exceeded",
    headers,
  });
}

export function toErrorBody({ type, code, message, param }: ApiError): ErrorBody {
  return { error: { type, code, message, param } };
}
